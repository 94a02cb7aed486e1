#include "lib/problem/ops/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "lib/problem/ops/fused_attention.h"
#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

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
                         "its window slides (attributes left_window_size, right_window_size)");
  }
  if (spec.input(kMask).has_gradient) return UnsupportedOp(spec, "its mask gets a gradient");
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

// Returns the number of features per head. Where heads lie side by side in one axis, an attribute
// gives their number.
Result<int64_t> ReadRowSize(const OpSpec& spec, const Operand& operand, std::string_view name,
                            int64_t heads) {
  const int64_t features = operand.dims.back();
  if (operand.dims.size() == 4) return features;
  if (heads >= 1 && features % heads == 0) return features / heads;
  return InvalidOp(spec, fmt::format("{} have {} features, which {} heads do not divide", name,
                                     features, heads));
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
  return InvalidOp(spec, fmt::format("it has {} heads of queries, no multiple of its {} heads of "
                                     "keys",
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

// Checks the sides of the matrix products; all heads that share keys form one matrix.
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
      {"Attention", JudgeBy<ReadAttentionShape>,
       "one output, no cache, cap or window; the mask gets no gradient"},
      {"FusedAttention", JudgeBy<ReadFusedAttentionShape>,
       "heads of at most 128 elements; no gradient of what is broadcast over queries or keys"}};
  return kRows;
}

}  // namespace ckplan
