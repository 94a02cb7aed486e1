#include "lib/problem/ops/contrib.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

Result<Done> RequireInputs(const OpSpec& spec, std::initializer_list<size_t> positions) {
  for (const size_t i : positions) {
    if (!spec.input(i).is_present) return InvalidOp(spec, fmt::format("input {} is missing", i));
  }
  return Done{};
}

// Ignores an absent operand.
Result<Done> CheckDims(const OpSpec& spec, size_t input, std::string_view name,
                       const Dims& expected) {
  if (!spec.input(input).is_present) return Done{};
  return RequireDims(spec, spec.input(input), name, expected);
}

Result<Done> CheckElements(const OpSpec& spec, size_t input, std::string_view name,
                           int64_t expected) {
  if (!spec.input(input).is_present) return Done{};
  return RequireElements(spec, spec.input(input), name, expected);
}

Result<Done> RequireRank(const OpSpec& spec, size_t input, size_t rank) {
  const Dims& dims = spec.input(input).dims;
  if (dims.size() == rank) return Done{};
  return InvalidOp(spec,
                   fmt::format("input {} is {}; it must have {} axes", input, TextOf(dims), rank));
}

// Low enough that sums of a few such numbers do not overflow.
constexpr int64_t kMaxOfAttribute = int64_t{1} << 40;

Result<int64_t> PositiveAttribute(const OpSpec& spec, std::string_view name) {
  const int64_t value = spec.Int(name, 0);
  if (value >= 1 && value <= kMaxOfAttribute) return value;
  if (!spec.Has(name)) return InvalidOp(spec, fmt::format("attribute {} is missing", name));
  return InvalidOp(spec, fmt::format("attribute {} is {}; it must be {}", name, value,
                                     value < 1 ? "at least 1" : "smaller"));
}

// Returns the number of features per head.
Result<int64_t> HeadSize(const OpSpec& spec, std::string_view what, int64_t features,
                         int64_t heads) {
  if (features % heads == 0) return features / heads;
  return InvalidOp(
      spec, fmt::format("{} have {} features, not divisible by {} heads", what, features, heads));
}

// Attributes that are integers, or lists of integers, in every operator that has them.
constexpr std::string_view kWholeNumbers[] = {"axis",
                                              "bits",
                                              "block_size",
                                              "channels",
                                              "do_rotary",
                                              "group",
                                              "interleaved",
                                              "is_inner_broadcast",
                                              "K",
                                              "kv_num_heads",
                                              "N",
                                              "num_heads",
                                              "quant_type",
                                              "transA",
                                              "transB",
                                              "transBatchA",
                                              "transBatchB",
                                              "unidirectional",
                                              "rotary_embedding_dim",
                                              "rotary_interleaved"};
constexpr std::string_view kLists[] = {"dilations", "kernel_shape", "pads", "qkv_hidden_sizes",
                                       "strides"};

template <typename T, size_t kCount>
Result<Done> CheckTypes(const OpSpec& spec, const std::string_view (&names)[kCount],
                        std::string_view what) {
  for (const std::string_view name : names) {
    const auto found = spec.attributes.find(name);
    if (found == spec.attributes.end() || std::holds_alternative<T>(found->second)) continue;
    return InvalidOp(spec, fmt::format("attribute {} is not {}", name, what));
  }
  return Done{};
}

Result<Done> ValidateAttributeTypes(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(CheckTypes<int64_t>(spec, kWholeNumbers, "a whole number"));
  return CheckTypes<std::vector<int64_t>>(spec, kLists, "a list of whole numbers");
}

// ---- Activations and normalisations ----

// Checks that the operand at `bias` has one element per feature of the first operand.
Result<Done> ValidateBiased(const OpSpec& spec, size_t bias) {
  const Dims& x = spec.input(0).dims;
  if (x.empty()) return InvalidOp(spec, "its input is a scalar");
  return CheckDims(spec, bias, "its bias", {x.back()});
}

Result<Done> ValidateActivation(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0}));
  return spec.input(1).is_present ? ValidateBiased(spec, 1) : Result<Done>(Done{});
}

Result<Done> ValidateBiasGelu(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1}));
  return ValidateBiased(spec, 1);
}

Result<Done> ValidateBiasSplitGelu(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateBiasGelu(spec));
  const int64_t features = spec.input(0).dims.back();
  if (features % 2 == 0) return Done{};
  return InvalidOp(spec, fmt::format("its {} features cannot be halved", features));
}

Result<Done> ValidateBiasAdd(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1, 2}));
  CKPLAN_RETURN_IF_ERROR(ValidateBiased(spec, 1));
  return CheckDims(spec, 2, "its third input", spec.input(0).dims);
}

Result<Done> ValidateBiasDropout(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1}));
  return CheckDims(spec, 2, "its residual", spec.input(0).dims);
}

Result<Done> ValidateTwoInputs(const OpSpec& spec) { return RequireInputs(spec, {0, 1}); }

// The skip connection has the shape of the input, with or without the batch.
Result<Done> ValidateSkip(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1, 2}));
  const Dims& x = spec.input(0).dims;
  if (x.size() != 2 && x.size() != 3) return RequireRank(spec, 0, 3);
  Dims skip = spec.input(1).dims;
  if (x.size() == 3 && skip.size() == 3 && skip[0] == 1) skip.erase(skip.begin());
  const bool is_shared = x.size() == 3 && skip == Dims(x.begin() + 1, x.end());
  if (!is_shared) CKPLAN_RETURN_IF_ERROR(CheckDims(spec, 1, "its skip", x));
  return CheckDims(spec, 2, "its scale", {x.back()});
}

Result<Done> ValidateSkipLayerNorm(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateSkip(spec));
  const Dims features = {spec.input(0).dims.back()};
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, 3, "its shift", features));
  return CheckDims(spec, 4, "its bias", features);
}

Result<Done> ValidateSkipRmsNorm(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateSkip(spec));
  return CheckDims(spec, 3, "its bias", {spec.input(0).dims.back()});
}

Result<Done> ValidateEmbedLayerNorm(const OpSpec& spec) {
  constexpr size_t kIds = 0, kSegments = 1, kWords = 2, kPositions = 3, kSegmentTable = 4;
  constexpr size_t kGamma = 5, kBeta = 6, kMask = 7, kPositionIds = 8;
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kIds, kWords, kPositions, kGamma, kBeta}));
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kIds, 2));
  for (const size_t table : {kWords, kPositions, kSegmentTable}) {
    if (!spec.input(table).is_present) continue;
    CKPLAN_RETURN_IF_ERROR(RequireRank(spec, table, 2));
    if (spec.input(table).dims[1] == spec.input(kWords).dims[1]) continue;
    return InvalidOp(spec, fmt::format("its tables have {} and {} columns",
                                       spec.input(kWords).dims[1], spec.input(table).dims[1]));
  }
  const Dims& ids = spec.input(kIds).dims;
  const Dims features = {spec.input(kWords).dims[1]};
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kSegments, "its segment ids", ids));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kMask, "its mask", ids));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kGamma, "its scale", features));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kBeta, "its shift", features));
  const int64_t places = spec.input(kPositions).dims[0];
  if (spec.input(kPositionIds).is_present || ids[1] <= places) return Done{};
  return InvalidOp(spec, fmt::format("it has {} tokens, but only {} positions", ids[1], places));
}

// ---- Attention ----

// Expects the shape [batch, heads, past, size].
Result<Done> CheckPast(const OpSpec& spec, size_t input, int64_t batch, int64_t heads,
                       int64_t size) {
  if (!spec.input(input).is_present) return Done{};
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, input, 4));
  const std::string_view name = "its past keys or values";
  return CheckDims(spec, input, name, {batch, heads, spec.input(input).dims[2], size});
}

Result<Done> CheckPastPair(const OpSpec& spec, size_t keys, size_t values) {
  if (spec.input(keys).is_present == spec.input(values).is_present) return Done{};
  return InvalidOp(spec, "it has past keys or past values, but not both");
}

Result<Done> ValidateAttention(const OpSpec& spec) {
  constexpr size_t kInput = 0, kWeights = 1, kBias = 2;
  const bool is_quantized = spec.type.ends_with("QAttention");
  const size_t past = is_quantized ? 8 : 4;
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kInput, kWeights}));
  if (is_quantized) CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kBias, 3, 4}));
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kInput, 3));
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kWeights, 2));
  CKPLAN_ASSIGN_OR_RETURN(const int64_t heads, PositiveAttribute(spec, "num_heads"));
  const Dims& x = spec.input(kInput).dims;
  const Dims& w = spec.input(kWeights).dims;
  if (x[2] != w[0]) {
    return InvalidOp(spec,
                     fmt::format("its input has {} features, and its weight {} rows", x[2], w[0]));
  }
  Dims sizes = spec.Ints("qkv_hidden_sizes");
  if (sizes.empty()) {
    if (w[1] % 3 != 0) {
      return InvalidOp(spec, fmt::format("its weight has {} columns, which cannot be divided among "
                                         "queries, keys and values",
                                         w[1]));
    }
    sizes.assign(3, w[1] / 3);
  }
  const bool are_positive = sizes.size() == 3 &&
                            *std::min_element(sizes.begin(), sizes.end()) >= 1 &&
                            *std::max_element(sizes.begin(), sizes.end()) <= w[1];
  if (!are_positive || sizes[0] + sizes[1] + sizes[2] != w[1] || sizes[0] != sizes[1]) {
    return InvalidOp(spec, fmt::format("attribute qkv_hidden_sizes is {}, and its weight has {} "
                                       "columns; it must be three sizes with this sum, the first "
                                       "two equal",
                                       TextOf(sizes), w[1]));
  }
  CKPLAN_ASSIGN_OR_RETURN(const int64_t size, HeadSize(spec, "its queries", sizes[0], heads));
  CKPLAN_RETURN_IF_ERROR(HeadSize(spec, "its values", sizes[2], heads));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kBias, "its bias", {w[1]}));
  if (!spec.input(past).is_present) return Done{};
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, past, 5));
  return CheckDims(spec, past, "its past", {2, x[0], heads, spec.input(past).dims[3], size});
}

// The sizes of a MultiHeadAttention's keys and values, in any of its input formats.
struct KeySizes {
  int64_t batch = 0, length = 0, features = 0, value_features = 0;
};

Result<KeySizes> ReadKeySizes(const OpSpec& spec, int64_t heads) {
  constexpr size_t kKeys = 1, kValues = 2;
  const Dims& k = spec.input(kKeys).dims;
  if (k.size() == 5) {  // [batch, length, heads, 2, size]
    CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kKeys, "its keys", {k[0], k[1], heads, 2, k[4]}));
    return KeySizes{k[0], k[1], heads * k[4], heads * k[4]};
  }
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kValues}));
  const Dims& v = spec.input(kValues).dims;
  if (k.size() == 4) {
    CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kValues, 4));
    CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kKeys, "its keys", {k[0], heads, k[2], k[3]}));
    CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kValues, "its values", {k[0], heads, k[2], v[3]}));
    return KeySizes{k[0], k[2], heads * k[3], heads * v[3]};
  }
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kKeys, 3));
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kValues, 3));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kValues, "its values", {k[0], k[1], v[2]}));
  return KeySizes{k[0], k[1], k[2], v[2]};
}

Result<Done> ValidateMultiHeadAttention(const OpSpec& spec) {
  constexpr size_t kQueries = 0, kKeys = 1, kBias = 3, kPastKeys = 6, kPastValues = 7;
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kQueries}));
  CKPLAN_ASSIGN_OR_RETURN(const int64_t heads, PositiveAttribute(spec, "num_heads"));
  const Dims& q = spec.input(kQueries).dims;
  if (q.size() == 5) {  // [batch, length, heads, 3, size]
    return CheckDims(spec, kQueries, "its queries", {q[0], q[1], heads, 3, q[4]});
  }
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kQueries, 3));
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kKeys}));
  CKPLAN_ASSIGN_OR_RETURN(const KeySizes keys, ReadKeySizes(spec, heads));
  if (keys.batch != q[0] || keys.features != q[2]) {
    return InvalidOp(spec, fmt::format("its queries have {} samples of {} features, and its keys "
                                       "{} of {}",
                                       q[0], q[2], keys.batch, keys.features));
  }
  CKPLAN_ASSIGN_OR_RETURN(const int64_t size, HeadSize(spec, "its queries", q[2], heads));
  CKPLAN_ASSIGN_OR_RETURN(const int64_t value_size,
                          HeadSize(spec, "its values", keys.value_features, heads));
  CKPLAN_RETURN_IF_ERROR(
      CheckDims(spec, kBias, "its bias", {q[2] + keys.features + keys.value_features}));
  CKPLAN_RETURN_IF_ERROR(CheckPastPair(spec, kPastKeys, kPastValues));
  CKPLAN_RETURN_IF_ERROR(CheckPast(spec, kPastKeys, q[0], heads, size));
  return CheckPast(spec, kPastValues, q[0], heads, value_size);
}

Result<Done> ValidateGroupQueryAttention(const OpSpec& spec) {
  constexpr size_t kQueries = 0, kKeys = 1, kValues = 2, kPastKeys = 3, kPastValues = 4;
  constexpr size_t kCos = 7, kSin = 8;
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kQueries}));
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kQueries, 3));
  CKPLAN_ASSIGN_OR_RETURN(const int64_t heads, PositiveAttribute(spec, "num_heads"));
  CKPLAN_ASSIGN_OR_RETURN(const int64_t kv_heads, PositiveAttribute(spec, "kv_num_heads"));
  if (heads % kv_heads != 0) {
    return InvalidOp(spec, fmt::format("its {} query heads are not a multiple of its {} key heads",
                                       heads, kv_heads));
  }
  const Dims& q = spec.input(kQueries).dims;
  const bool is_packed = !spec.input(kKeys).is_present && !spec.input(kValues).is_present;
  const int64_t row_heads = is_packed ? heads + 2 * kv_heads : heads;
  CKPLAN_ASSIGN_OR_RETURN(const int64_t size, HeadSize(spec, "its queries", q[2], row_heads));
  if (!is_packed) {
    CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kKeys, kValues}));
    CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kKeys, 3));
    const Dims keys = {q[0], spec.input(kKeys).dims[1], kv_heads * size};
    CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kKeys, "its keys", keys));
    CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kValues, "its values", keys));
  }
  CKPLAN_RETURN_IF_ERROR(CheckPastPair(spec, kPastKeys, kPastValues));
  CKPLAN_RETURN_IF_ERROR(CheckPast(spec, kPastKeys, q[0], kv_heads, size));
  CKPLAN_RETURN_IF_ERROR(CheckPast(spec, kPastValues, q[0], kv_heads, size));
  if (spec.Int("do_rotary", 0) == 0) return Done{};
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kCos, kSin}));
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kCos, 2));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kSin, "its sine cache", spec.input(kCos).dims));
  if (spec.input(kCos).dims[1] <= size / 2) return Done{};
  return InvalidOp(spec, fmt::format("its cosine cache has {} columns, more than half of the {} "
                                     "features of a head",
                                     spec.input(kCos).dims[1], size));
}

Result<Done> ValidateRotary(const OpSpec& spec) {
  constexpr size_t kInput = 0, kPositions = 1, kCos = 2, kSin = 3;
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {kInput, kPositions, kCos, kSin}));
  const Dims& x = spec.input(kInput).dims;
  if (x.size() != 3) CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kInput, 4));
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kCos, 2));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kSin, "its sine cache", spec.input(kCos).dims));
  const int64_t heads = spec.Int("num_heads", 0);
  if (heads < 0) CKPLAN_RETURN_IF_ERROR(PositiveAttribute(spec, "num_heads"));
  if (x.size() == 3 && heads > 0) {
    CKPLAN_RETURN_IF_ERROR(HeadSize(spec, "its tokens", x[2], heads));
  }
  if (spec.input(kPositions).elements() == 1) return Done{};
  return CheckDims(spec, kPositions, "its positions", {x[0], x.size() == 3 ? x[1] : x[2]});
}

// ---- Products with quantized weights ----

constexpr int64_t kBitsOfByte = 8;

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// The rows, columns and block size of a weight, from attributes.
struct BlockedWeight {
  int64_t k = 0, n = 0, block = 0;
};

Result<BlockedWeight> ReadBlockedWeight(const OpSpec& spec) {
  BlockedWeight weight;
  CKPLAN_ASSIGN_OR_RETURN(weight.k, PositiveAttribute(spec, "K"));
  CKPLAN_ASSIGN_OR_RETURN(weight.n, PositiveAttribute(spec, "N"));
  CKPLAN_ASSIGN_OR_RETURN(weight.block, PositiveAttribute(spec, "block_size"));
  const bool is_power = (weight.block & (weight.block - 1)) == 0;
  if (weight.block < 16 || !is_power) {
    return InvalidOp(spec, fmt::format("attribute block_size is {}; it must be a power of 2, at "
                                       "least 16",
                                       weight.block));
  }
  if (!CheckedMul(weight.n, kBitsOfByte * (weight.k + weight.block))) {
    return InvalidOp(
        spec, fmt::format("its weight of {} rows and {} columns is too large", weight.n, weight.k));
  }
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1, 2}));
  const Dims& a = spec.input(0).dims;
  if (!a.empty() && a.back() == weight.k) return weight;
  return InvalidOp(spec, fmt::format("its input is {}; the last axis must have the {} elements of "
                                     "attribute K",
                                     TextOf(a), weight.k));
}

Result<Done> ValidateNBits(const OpSpec& spec) {
  constexpr size_t kWeights = 1, kScales = 2, kBias = 5;
  constexpr int64_t kMinBits = 2, kMaxBits = 8;
  CKPLAN_ASSIGN_OR_RETURN(const BlockedWeight weight, ReadBlockedWeight(spec));
  const int64_t bits = spec.Int("bits", 4);
  if (bits < kMinBits || bits > kMaxBits) {
    return InvalidOp(spec, fmt::format("attribute bits is {}; it must be from {} to {}", bits,
                                       kMinBits, kMaxBits));
  }
  const int64_t blocks = CeilDiv(weight.k, weight.block);
  const int64_t block_bytes = CeilDiv(weight.block * bits, kBitsOfByte);
  CKPLAN_RETURN_IF_ERROR(
      CheckElements(spec, kWeights, "its weight", weight.n * blocks * block_bytes));
  CKPLAN_RETURN_IF_ERROR(CheckElements(spec, kScales, "its scales", weight.n * blocks));
  return CheckDims(spec, kBias, "its bias", {weight.n});
}

// The weight and its scales may have padding at the end.
Result<Done> ValidateBnb4(const OpSpec& spec) {
  constexpr size_t kWeights = 1, kScales = 2;
  CKPLAN_ASSIGN_OR_RETURN(const BlockedWeight weight, ReadBlockedWeight(spec));
  const int64_t elements = weight.k * weight.n;
  for (const auto& [input, name, needed] :
       {std::tuple(kWeights, "its weight", CeilDiv(elements, 2)),
        std::tuple(kScales, "its scales", CeilDiv(elements, weight.block))}) {
    if (spec.input(input).elements() >= needed) continue;
    CKPLAN_RETURN_IF_ERROR(CheckElements(spec, input, name, needed));
  }
  return Done{};
}

Result<Done> ValidateFpQ4(const OpSpec& spec) {
  constexpr size_t kShape = 2;
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1, kShape}));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, kShape, "the shape of its weight", {2}));
  const Operand& shape = spec.input(kShape);
  const Dims& a = spec.input(0).dims;
  if (!shape.known || shape.known->ints.size() != 2 || a.empty()) return Done{};
  if (a.back() == shape.known->ints[0]) return Done{};
  return InvalidOp(spec, fmt::format("its operands are {} and {}, which cannot be multiplied",
                                     TextOf(a), TextOf(shape.known->ints)));
}

// Checks the two factors; `scale` and `bias` are the positions of the second factor's scale and of
// the bias.
Result<Done> ValidateIntegerProduct(const OpSpec& spec, size_t scale, size_t bias) {
  const Dims& a = spec.input(0).dims;
  const Dims& b = spec.input(1).dims;
  const bool fits = !a.empty() && !b.empty() && a.back() == b[b.size() < 2 ? 0 : b.size() - 2];
  if (!fits) {
    return InvalidOp(spec, fmt::format("its operands are {} and {}, which cannot be multiplied",
                                       TextOf(a), TextOf(b)));
  }
  if (b.size() != 2) return Done{};
  if (spec.input(scale).elements() != 1) {
    CKPLAN_RETURN_IF_ERROR(CheckElements(spec, scale, "its second scale", b.back()));
  }
  return CheckDims(spec, bias, "its bias", {b.back()});
}

Result<Done> ValidateDynamicQuantizeMatMul(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1, 2}));
  return ValidateIntegerProduct(spec, 2, 4);
}

Result<Done> ValidateMatMulIntegerToFloat(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, 1, 2, 3}));
  return ValidateIntegerProduct(spec, 3, 6);
}

Result<Done> ValidateQuantizedConv(const OpSpec& spec) {
  constexpr size_t kWeights = 3;
  CKPLAN_RETURN_IF_ERROR(RequireInputs(spec, {0, kWeights}));
  const Dims& x = spec.input(0).dims;
  const Dims& w = spec.input(kWeights).dims;
  if (x.size() < 3) return RequireRank(spec, 0, 4);
  CKPLAN_RETURN_IF_ERROR(RequireRank(spec, kWeights, x.size()));
  const int64_t channels = spec.Int("channels_last", 0) != 0 ? x.back() : x[1];
  const int64_t group = spec.Int("group", 1);
  if (group >= 1 && channels % group == 0 && channels / group == w[1]) return Done{};
  return InvalidOp(spec, fmt::format("its input has {} channels, and its weight {} in each of {} "
                                     "groups",
                                     channels, w[1], group));
}

// ---- The table ----

struct ContribRow {
  std::string_view type;  // Without the domain.
  Result<Done> (*validate)(const OpSpec& spec);
};

constexpr ContribRow kContribRows[] = {
    {"Attention", ValidateAttention},
    {"BiasAdd", ValidateBiasAdd},
    {"BiasDropout", ValidateBiasDropout},
    {"BiasGelu", ValidateBiasGelu},
    {"BiasSoftmax", ValidateTwoInputs},
    {"BiasSplitGelu", ValidateBiasSplitGelu},
    {"DynamicQuantizeMatMul", ValidateDynamicQuantizeMatMul},
    {"EmbedLayerNormalization", ValidateEmbedLayerNorm},
    {"FastGelu", ValidateActivation},
    {"FusedConv", ValidateTwoInputs},
    {"FusedGemm", ValidateTwoInputs},
    {"FusedMatMul", ValidateTwoInputs},
    {"Gelu", ValidateActivation},
    {"GroupQueryAttention", ValidateGroupQueryAttention},
    {"MatMulBnb4", ValidateBnb4},
    {"MatMulFpQ4", ValidateFpQ4},
    {"MatMulIntegerToFloat", ValidateMatMulIntegerToFloat},
    {"MatMulNBits", ValidateNBits},
    {"MultiHeadAttention", ValidateMultiHeadAttention},
    {"QAttention", ValidateAttention},
    {"QEmbedLayerNormalization", ValidateEmbedLayerNorm},
    {"QLinearConv", ValidateQuantizedConv},
    {"QuickGelu", ValidateActivation},
    {"RotaryEmbedding", ValidateRotary},
    {"SimplifiedLayerNormalization", ValidateTwoInputs},
    {"SkipLayerNormalization", ValidateSkipLayerNorm},
    {"SkipSimplifiedLayerNormalization", ValidateSkipRmsNorm},
    {"TorchEmbedding", ValidateTwoInputs},
    {"TransposeMatMul", ValidateTwoInputs},
};

}  // namespace

Result<Done> ValidateContrib(const OpSpec& spec) {
  constexpr std::string_view kDomain = "com.microsoft.";
  if (!spec.type.starts_with(kDomain)) return Done{};
  const std::string_view type = std::string_view(spec.type).substr(kDomain.size());
  const auto* const row = std::find_if(std::begin(kContribRows), std::end(kContribRows),
                                       [&](const ContribRow& one) { return one.type == type; });
  if (row == std::end(kContribRows)) return Done{};
  CKPLAN_RETURN_IF_ERROR(ValidateAttributeTypes(spec));
  return row->validate(spec);
}

}  // namespace ckplan
