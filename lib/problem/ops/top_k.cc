#include "lib/problem/ops/top_k.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

Result<Done> JudgeOutputs(const OpSpec& spec, const Dims& expected) {
  const Operand& values = spec.output(0);
  const Operand& indices = spec.output(1);
  if (values.is_present) {
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, values, "its output of values", expected));
    CKPLAN_RETURN_IF_ERROR(RequireType(spec, values, "its output of values", spec.input(0).type));
  }
  if (indices.is_present) {
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, indices, "its output of indices", expected));
    CKPLAN_RETURN_IF_ERROR(
        RequireType(spec, indices, "its output of indices", ElementType::kInt64));
  }
  return Done{};
}

}  // namespace

Result<TopKShape> ReadTopKShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1, 0));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  Dims dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", -1), dims.size()));
  const Operand& chosen = spec.output(0).is_present ? spec.output(0) : spec.output(1);
  if (!chosen.is_present || chosen.dims.size() != dims.size()) {
    return InvalidOp(spec,
                     fmt::format("it has no output of {} axes, as its input has", dims.size()));
  }
  TopKShape shape{ViewAlong(dims, axis), chosen.dims[axis], spec.Int("largest", 1) != 0,
                  spec.statistic_bytes > 0};
  const auto& known = spec.input(1).known;
  if (known.has_value() && known->ints.size() == 1) shape.chosen = known->ints[0];
  if (shape.chosen < 0 || shape.chosen > dims[axis]) {
    return InvalidOp(spec, fmt::format("it asks for {} of the {} elements of axis {}", shape.chosen,
                                       dims[axis], axis));
  }
  dims[axis] = shape.chosen;
  CKPLAN_RETURN_IF_ERROR(JudgeOutputs(spec, dims));
  const int64_t list_bytes = shape.lines() * shape.chosen * SizeOf(ElementType::kInt64);
  if (shape.has_statistic && spec.statistic_bytes < list_bytes) {
    return InvalidOp(spec, fmt::format("its statistic of {} bytes cannot hold {} indices",
                                       spec.statistic_bytes, shape.lines() * shape.chosen));
  }
  const bool keeps_indices = spec.output(1).is_present && spec.output(1).is_read_by_backward;
  if (spec.input(0).has_gradient && !shape.has_statistic && !keeps_indices) {
    return UnsupportedOp(spec, "its indices are not kept for backward");
  }
  return shape;
}

std::span<const FamilyRow> TopKFamily() {
  static constexpr FamilyRow kRows[] = {{"TopK", JudgeBy<ReadTopKShape>}};
  return kRows;
}

}  // namespace ckplan
