#include "lib/problem/ops/fused_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

namespace {

constexpr size_t kMask = 3, kBias = 4;  // Positions of inputs.

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
    return InvalidOp(spec, fmt::format("it has {} heads of queries, no multiple of its {} heads of "
                                       "keys",
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
    return InvalidOp(spec, fmt::format("its attribute {} is \"{}\", no order of the axes b, h, s "
                                       "and d with d at the end",
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
        spec, fmt::format("its {} gets a gradient, and is broadcast over queries or keys", name));
  }
  return term;
}

}  // namespace

Result<FusedAttentionShape> ReadFusedAttentionShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 3));
  FusedAttentionShape shape;
  CKPLAN_RETURN_IF_ERROR(ReadCounts(spec, shape));
  CKPLAN_RETURN_IF_ERROR(ReadRows(spec, shape));
  CKPLAN_ASSIGN_OR_RETURN(shape.mask, ReadTerm(spec, kMask, "mask", shape));
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

}  // namespace ckplan
