#include "lib/problem/ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

constexpr size_t kMask = 3, kFirstPast = 4, kLastPast = 6;  // Positions of inputs.

Result<Done> CheckAttentionOptions(const OpSpec& spec) {
  for (size_t i = kFirstPast; i <= kLastPast; ++i) {
    if (spec.input(i).is_present) {
      return UnsupportedOp(spec, "it has a cache of past keys and values");
    }
  }
  for (size_t i = 1; i < spec.outputs.size(); ++i) {
    if (spec.outputs[i].is_present) return UnsupportedOp(spec, "it has a second output");
  }
  if (spec.Float("softcap", 0) != 0) {
    return UnsupportedOp(spec, "its scores are capped (attribute softcap)");
  }
  if (spec.Int("left_window_size", -1) >= 0 || spec.Int("right_window_size", -1) >= 0) {
    return UnsupportedOp(spec,
                         "it uses a sliding window (attributes left_window_size, "
                         "right_window_size)");
  }
  if (spec.input(kMask).has_gradient) return UnsupportedOp(spec, "its mask needs a gradient");
  return Done{};
}

Result<Done> CheckAttentionRanks(const OpSpec& spec) {
  const size_t rank = spec.input(0).dims.size();
  if (rank != 3 && rank != 4) {
    return InvalidOp(spec, fmt::format("its queries have {} axes instead of 3 or 4", rank));
  }
  for (const Operand* operand : {&spec.input(1), &spec.input(2), &spec.output(0)}) {
    if (operand->dims.size() == rank) continue;
    return InvalidOp(spec, fmt::format("its queries have {} axes, and its keys, values and output "
                                       "{}, {} and {}",
                                       rank, spec.input(1).dims.size(), spec.input(2).dims.size(),
                                       spec.output(0).dims.size()));
  }
  return Done{};
}

// Returns the number of features per head. `heads` matters only if one axis holds all heads.
Result<int64_t> ReadRowSize(const OpSpec& spec, const Operand& operand, std::string_view name,
                            int64_t heads) {
  const int64_t features = operand.dims.back();
  if (operand.dims.size() == 4) return features;
  if (heads >= 1 && features % heads == 0) return features / heads;
  return InvalidOp(
      spec, fmt::format("{} have {} features, not divisible by {} heads", name, features, heads));
}

Result<Done> ReadSizes(const OpSpec& spec, AttentionShape& shape) {
  const Dims& q = spec.input(0).dims;
  const Dims& k = spec.input(1).dims;
  shape.is_head_major = q.size() == 4;
  shape.batch = q[0];
  shape.heads = shape.is_head_major ? q[1] : spec.Int("q_num_heads", 1);
  shape.key_heads = shape.is_head_major ? k[1] : spec.Int("kv_num_heads", 1);
  shape.queries = q[q.size() - 2];
  shape.keys = k[k.size() - 2];
  CKPLAN_ASSIGN_OR_RETURN(shape.size, ReadRowSize(spec, spec.input(0), "its queries", shape.heads));
  CKPLAN_ASSIGN_OR_RETURN(shape.value_size,
                          ReadRowSize(spec, spec.input(2), "its values", shape.key_heads));
  if (shape.heads % shape.key_heads == 0) return Done{};
  return InvalidOp(spec, fmt::format("its {} query heads are not a multiple of its {} key heads",
                                     shape.heads, shape.key_heads));
}

Dims DimsOf(const AttentionShape& shape, int64_t heads, int64_t rows, int64_t size) {
  if (shape.is_head_major) return {shape.batch, heads, rows, size};
  return {shape.batch, rows, heads * size};
}

Result<Done> CheckDims(const OpSpec& spec, const AttentionShape& shape) {
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(1), "its key",
                                     DimsOf(shape, shape.key_heads, shape.keys, shape.size)));
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(2), "its value",
                                     DimsOf(shape, shape.key_heads, shape.keys, shape.value_size)));
  return RequireDims(spec, spec.output(0), "its output",
                     DimsOf(shape, shape.heads, shape.queries, shape.value_size));
}

// Checks the sides of the matrix products. All heads that share keys form one matrix.
Result<Done> CheckLibrarySizes(const OpSpec& spec, const AttentionShape& shape) {
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the number of its samples and heads", {shape.batch, shape.heads}));
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the number of queries of all heads", {shape.heads, shape.queries}));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of its keys", shape.keys));
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the size of a row of queries", {shape.heads, shape.size}));
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the size of a row of its output", {shape.heads, shape.value_size}));
  return RequireStatistic(spec, {shape.batch, shape.heads, shape.queries, shape.keys, kFloatBytes});
}

Result<AttentionMask> ReadMask(const OpSpec& spec, const AttentionShape& shape) {
  AttentionMask mask;
  const Operand& operand = spec.input(kMask);
  if (!operand.is_present) return mask;
  mask.is_present = true;
  mask.type = operand.type;
  if (!mask.is_bool() && !IsFloat(mask.type)) {
    return UnsupportedOp(
        spec, fmt::format("its mask is {}; booleans and floats are supported", NameOf(mask.type)));
  }
  const Dims full = {shape.batch, shape.heads, shape.queries, shape.keys};
  const Dims& dims = operand.dims;
  int64_t stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = dims[dims.size() - 1 - i];
    if (i >= full.size() || (dim != 1 && dim != full[full.size() - 1 - i])) {
      return InvalidOp(spec, fmt::format("its mask is {}, which cannot be broadcast to {}",
                                         TextOf(dims), TextOf(full)));
    }
    mask.strides[full.size() - 1 - i] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  return mask;
}

}  // namespace

Result<AttentionShape> ReadAttentionShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 3));
  CKPLAN_RETURN_IF_ERROR(CheckAttentionOptions(spec));
  CKPLAN_RETURN_IF_ERROR(CheckAttentionRanks(spec));
  AttentionShape shape;
  CKPLAN_RETURN_IF_ERROR(ReadSizes(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckDims(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckLibrarySizes(spec, shape));
  CKPLAN_ASSIGN_OR_RETURN(shape.mask, ReadMask(spec, shape));
  const double usual = 1 / std::sqrt(static_cast<double>(shape.size));
  shape.scale = static_cast<float>(spec.Float("scale", usual));
  shape.is_causal = spec.Int("is_causal", 0) != 0;
  shape.has_statistic = spec.statistic_bytes > 0;
  return shape;
}

std::span<const FamilyRow> AttentionFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Attention", ValidateBy<ReadAttentionShape>,
       "one output; no cache, cap or window; no gradient for the mask"},
      {"FusedAttention", ValidateBy<ReadFusedAttentionShape>,
       "heads of at most 128 elements; no gradients for masks or biases broadcast over queries or "
       "keys"}};
  return kRows;
}

namespace {

constexpr size_t kTermMask = 3, kBias = 4;  // Positions of inputs.

Result<Done> ReadCounts(const OpSpec& spec, FusedAttentionShape& shape) {
  const auto read = [&](std::string_view attribute, int64_t& count) -> Result<Done> {
    count = spec.Int(attribute, 0);
    if (count >= 1) return RequireLibrarySize(spec, attribute, count);
    return InvalidOp(spec, fmt::format("its attribute {} is {}", attribute, count));
  };
  CKPLAN_RETURN_IF_ERROR(read("batch", shape.batch));
  CKPLAN_RETURN_IF_ERROR(read("heads", shape.heads));
  CKPLAN_RETURN_IF_ERROR(read("key_heads", shape.key_heads));
  CKPLAN_RETURN_IF_ERROR(read("queries", shape.queries));
  CKPLAN_RETURN_IF_ERROR(read("keys", shape.keys));
  CKPLAN_RETURN_IF_ERROR(read("size", shape.size));
  CKPLAN_RETURN_IF_ERROR(read("value_size", shape.value_size));
  if (shape.heads % shape.key_heads != 0) {
    return InvalidOp(spec, fmt::format("its {} query heads are not a multiple of its {} key heads",
                                       shape.heads, shape.key_heads));
  }
  if (std::max(shape.size, shape.value_size) > kMaxAttentionSize) {
    return UnsupportedOp(spec, fmt::format("its heads have {} and {} elements, more than {}",
                                           shape.size, shape.value_size, kMaxAttentionSize));
  }
  return RequireLibrarySize(spec, "the number of its samples and heads",
                            {shape.batch, shape.heads});
}

struct HeadSizes {
  int64_t batch = 1, heads = 1, rows = 1, size = 1;

  int64_t Along(char axis) const {
    return axis == 'b' ? batch : (axis == 'h' ? heads : (axis == 's' ? rows : size));
  }
};

Result<HeadRows> ReadHeadRows(const OpSpec& spec, const Operand& operand, char name,
                              const HeadSizes& sizes) {
  const std::string attribute = fmt::format("{}_axes", name);
  const std::string axes = spec.String(attribute, "bhsd");
  std::string sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != "bdhs" || axes.back() != 'd') {
    return InvalidOp(spec, fmt::format("its attribute {} is \"{}\", not an order of the axes b, h, "
                                       "s and d that ends with d",
                                       attribute, axes));
  }
  const auto elements = SizeProduct({sizes.batch, sizes.heads, sizes.rows, sizes.size});
  if (!elements || *elements != operand.elements()) {
    return InvalidOp(spec, fmt::format("its operand {} has {} elements instead of {} x {} x {} x "
                                       "{}",
                                       name, operand.elements(), sizes.batch, sizes.heads,
                                       sizes.rows, sizes.size));
  }
  HeadRows rows;
  int64_t stride = sizes.size;
  for (size_t i = axes.size() - 1; i-- > 0;) {
    (axes[i] == 'b' ? rows.batch_stride : (axes[i] == 'h' ? rows.head_stride : rows.row_stride)) =
        stride;
    stride *= sizes.Along(axes[i]);
  }
  return rows;
}

Result<Done> ReadRows(const OpSpec& spec, FusedAttentionShape& shape) {
  const HeadSizes q = {shape.batch, shape.heads, shape.queries, shape.size};
  const HeadSizes k = {shape.batch, shape.key_heads, shape.keys, shape.size};
  const HeadSizes v = {shape.batch, shape.key_heads, shape.keys, shape.value_size};
  const HeadSizes y = {shape.batch, shape.heads, shape.queries, shape.value_size};
  CKPLAN_ASSIGN_OR_RETURN(shape.q, ReadHeadRows(spec, spec.input(0), 'q', q));
  CKPLAN_ASSIGN_OR_RETURN(shape.k, ReadHeadRows(spec, spec.input(1), 'k', k));
  CKPLAN_ASSIGN_OR_RETURN(shape.v, ReadHeadRows(spec, spec.input(2), 'v', v));
  CKPLAN_ASSIGN_OR_RETURN(shape.y, ReadHeadRows(spec, spec.output(0), 'y', y));
  return Done{};
}

Result<AttentionTerm> ReadTerm(const OpSpec& spec, size_t position, std::string_view name,
                               const FusedAttentionShape& shape) {
  AttentionTerm term;
  const Operand& operand = spec.input(position);
  if (!operand.is_present) return term;
  term.is_present = true;
  term.type = operand.type;
  if (!term.is_bool() && !IsFloat(term.type)) {
    return UnsupportedOp(spec, fmt::format("its {} is {}; booleans and floats are supported", name,
                                           NameOf(term.type)));
  }
  const std::vector<int64_t> dims = spec.Ints(fmt::format("{}_dims", name));
  const std::vector<int64_t> full = {shape.batch, shape.heads, shape.queries, shape.keys};
  bool fits = dims.size() == full.size();
  for (size_t i = 0; fits && i < full.size(); ++i) {
    const bool repeats = i == 0 && dims[i] >= 1 && full[i] % dims[i] == 0;
    fits = dims[i] == 1 || dims[i] == full[i] || repeats;
  }
  if (!fits || SizeProduct(dims) != operand.elements()) {
    return InvalidOp(spec, fmt::format("its {} has {} elements as {}, which cannot be broadcast to "
                                       "{}",
                                       name, operand.elements(), TextOf(dims), TextOf(full)));
  }
  std::copy(dims.begin(), dims.end(), term.dims.begin());
  term.samples = dims[0];
  int64_t stride = 1;
  for (size_t i = full.size(); i-- > 0;) {
    term.strides[i] = dims[i] == 1 ? 0 : stride;
    stride *= dims[i];
  }
  if (operand.has_gradient && (dims[2] != full[2] || dims[3] != full[3])) {
    return UnsupportedOp(
        spec, fmt::format("its {} needs a gradient but is broadcast over queries or keys", name));
  }
  return term;
}

}  // namespace

Result<FusedAttentionShape> ReadFusedAttentionShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 3));
  FusedAttentionShape shape;
  CKPLAN_RETURN_IF_ERROR(ReadCounts(spec, shape));
  CKPLAN_RETURN_IF_ERROR(ReadRows(spec, shape));
  CKPLAN_ASSIGN_OR_RETURN(shape.mask, ReadTerm(spec, kTermMask, "mask", shape));
  CKPLAN_ASSIGN_OR_RETURN(shape.bias, ReadTerm(spec, kBias, "bias", shape));
  CKPLAN_RETURN_IF_ERROR(
      RequireStatistic(spec, {shape.batch, shape.heads, shape.queries, kFloatBytes}));
  shape.mask.hides = spec.Int("mask_hides", 0) != 0;
  shape.scale = static_cast<float>(spec.Float("scale", 1));
  shape.fill = static_cast<float>(spec.Float("fill", -std::numeric_limits<double>::infinity()));
  shape.is_causal = spec.Int("is_causal", 0) != 0;
  shape.dropout = spec.Float("dropout", 0);
  if (!(shape.dropout >= 0 && shape.dropout <= 1)) {
    return InvalidOp(spec,
                     fmt::format("its dropout is {}, which is not between 0 and 1", shape.dropout));
  }
  shape.has_statistic = spec.statistic_bytes > 0;
  return shape;
}

namespace {

// The input is [batch, heads, length, features] or [batch, length, heads * features].
Result<RotaryShape> ReadInput(const OpSpec& spec) {
  const std::vector<int64_t>& x = spec.input(0).dims;
  RotaryShape shape;
  if (x.size() == 4) {
    shape.is_head_major = true;
    shape.heads = x[1];
    shape.length = x[2];
    shape.features = x[3];
  } else if (x.size() == 3) {
    shape.heads = spec.Int("num_heads", 0);
    shape.length = x[1];
    if (shape.heads < 1 || x[2] % shape.heads != 0) {
      return InvalidOp(spec, fmt::format("num_heads is {}, which does not divide its {} features",
                                         shape.heads, x[2]));
    }
    shape.features = x[2] / shape.heads;
  } else {
    return InvalidOp(spec, fmt::format("its input has {} axes instead of 3 or 4", x.size()));
  }
  shape.batch = x[0];
  return shape;
}

// Checks that the caches have a row per position, or per token if there are no position ids.
Result<Done> CheckCaches(const OpSpec& spec, const RotaryShape& shape) {
  const int64_t pairs = shape.rotated / 2;
  const Dims needed =
      shape.cache_rows > 0 ? Dims{shape.cache_rows, pairs} : Dims{shape.batch, shape.length, pairs};
  for (size_t cache = 1; cache <= 2; ++cache) {
    const std::string_view name = cache == 1 ? "its cosine cache" : "its sine cache";
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(cache), name));
    // PyTorch's exporter writes such caches.
    if (shape.cache_rows == 0 && spec.input(cache).dims == Dims{1, shape.length, pairs} &&
        shape.batch != 1) {
      return UnsupportedOp(spec, fmt::format("{} is shared by all samples", name));
    }
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(cache), name, needed));
  }
  return Done{};
}

}  // namespace

Result<RotaryShape> ReadRotaryShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  CKPLAN_ASSIGN_OR_RETURN(RotaryShape shape, ReadInput(spec));
  shape.is_interleaved = spec.Int("interleaved", 0) != 0;
  const int64_t rotated = spec.Int("rotary_embedding_dim", 0);
  shape.rotated = rotated == 0 ? shape.features : rotated;
  if (shape.rotated < 0 || shape.rotated > shape.features || shape.rotated % 2 != 0) {
    return InvalidOp(spec, fmt::format("it rotates {} of {} features; the number must be even",
                                       shape.rotated, shape.features));
  }
  const Operand& positions = spec.input(3);
  if (positions.is_present) {
    if (positions.type != ElementType::kInt64) {
      return UnsupportedOp(spec, "its positions are not int64");
    }
    const Dims tokens = {shape.batch, shape.length};
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, positions, "its list of positions", tokens));
    if (spec.input(1).dims.empty() || spec.input(1).dims[0] < 1) {
      return InvalidOp(spec, "its caches have no rows");
    }
    shape.cache_rows = spec.input(1).dims[0];
  }
  CKPLAN_RETURN_IF_ERROR(CheckCaches(spec, shape));
  return shape;
}

std::span<const FamilyRow> RotaryFamily() {
  static constexpr FamilyRow kRows[] = {{"RotaryEmbedding", ValidateBy<ReadRotaryShape>}};
  return kRows;
}

}  // namespace ckplan
