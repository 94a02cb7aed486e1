#include "lib/problem/ops/reduce.h"

#include <fmt/format.h>

#include <optional>

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

// Returns a flag per axis of the input: whether it is reduced.
Result<std::vector<bool>> ReadReducedAxes(const OpSpec& spec) {
  const size_t rank = spec.input(0).dims.size();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> axes, KnownInts(spec, 1, "axes"));
  if (!axes.has_value() || axes->empty()) {
    return std::vector<bool>(rank, spec.Int("noop_with_empty_axes", 0) == 0);
  }
  std::vector<bool> is_reduced(rank, false);
  for (const int64_t axis : *axes) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t normal, NormalAxis(spec, axis, rank));
    is_reduced[normal] = true;
  }
  return is_reduced;
}

// These are the reductions that backends support for integers.
bool TakesIntegers(const OpSpec& spec) {
  for (const char* type : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"}) {
    if (spec.type == type) return true;
  }
  return false;
}

Result<Done> ValidateReducedTypes(const OpSpec& spec) {
  if (TakesIntegers(spec)) {
    CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  } else {
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  }
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

}  // namespace

Result<ReduceShape> ReadReduceShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  CKPLAN_RETURN_IF_ERROR(ValidateReducedTypes(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<bool> is_reduced, ReadReducedAxes(spec));
  const Dims& dims = spec.input(0).dims;
  const bool keeps_axes = spec.Int("keepdims", 1) != 0;
  Dims with_ones = dims;
  Dims expected;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (is_reduced[axis]) with_ones[axis] = 1;
    if (keeps_axes || !is_reduced[axis]) expected.push_back(with_ones[axis]);
  }
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", expected));
  return ReduceShape{Collapse(dims, {RowMajorStrides(dims), BroadcastStrides(with_ones, dims)}),
                     spec.output(0).elements(), spec.input(0).elements()};
}

std::span<const FamilyRow> ReduceFamily() {
  static constexpr FamilyRow kRows[] = {
      {"ReduceSum", ValidateBy<ReadReduceShape>},
      {"ReduceMean", ValidateBy<ReadReduceShape>},
      {"ReduceMax", ValidateBy<ReadReduceShape>},
      {"ReduceMin", ValidateBy<ReadReduceShape>},
      {"ReduceProd", ValidateBy<ReadReduceShape>},
      {"ReduceL1", ValidateBy<ReadReduceShape>},
      {"ReduceL2", ValidateBy<ReadReduceShape>},
      {"ReduceSumSquare", ValidateBy<ReadReduceShape>},
      {"ReduceLogSum", ValidateBy<ReadReduceShape>},
      {"ReduceLogSumExp", ValidateBy<ReadReduceShape>},
      {"ReduceVariance", ValidateBy<ReadReduceShape>},
  };
  return kRows;
}

Result<CumSumShape> ReadCumSumShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> axes, KnownInts(spec, 1, "axis"));
  if (!axes.has_value() || axes->size() != 1)
    return InvalidOp(spec, "it must have exactly one axis");
  const Dims& dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, (*axes)[0], dims.size()));
  return CumSumShape{ViewAlong(dims, axis), spec.Int("exclusive", 0) != 0,
                     spec.Int("reverse", 0) != 0};
}

Result<ArgShape> ReadArgShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.output(0), "its output", ElementType::kInt64));
  Dims dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", 0), dims.size()));
  const AxisView view = ViewAlong(dims, axis);
  dims[axis] = 1;
  if (spec.Int("keepdims", 1) == 0) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", dims));
  if (view.size == 0 && spec.output(0).elements() > 0) {
    return InvalidOp(spec, fmt::format("axis {} is empty, so it has no maximum or minimum", axis));
  }
  return ArgShape{view, spec.type == "ArgMax", spec.Int("select_last_index", 0) != 0};
}

// Before opset 13, all axes from the given one on counted as one axis.
Result<AxisView> ReadHardmaxShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  const Dims& dims = spec.input(0).dims;
  const bool is_old = spec.opset < 13;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", is_old ? 1 : -1), dims.size()));
  const AxisView view = ViewAlong(dims, axis);
  return is_old ? AxisView{view.outer, view.size * view.inner, 1} : view;
}

std::span<const FamilyRow> ScanFamily() {
  static constexpr FamilyRow kRows[] = {
      {"ArgMax", ValidateBy<ReadArgShape>},
      {"ArgMin", ValidateBy<ReadArgShape>},
      {"CumSum", ValidateBy<ReadCumSumShape>},
      {"Hardmax", ValidateBy<ReadHardmaxShape>},
  };
  return kRows;
}

namespace {

Result<Done> ValidateOutputs(const OpSpec& spec, const Dims& expected) {
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
    return InvalidOp(spec, fmt::format("its output must have {} axes like its input", dims.size()));
  }
  TopKShape shape{ViewAlong(dims, axis), chosen.dims[axis], spec.Int("largest", 1) != 0,
                  spec.statistic_bytes > 0};
  const auto& known = spec.input(1).known;
  if (known.has_value() && known->ints.size() == 1) shape.chosen = known->ints[0];
  if (shape.chosen < 0 || shape.chosen > dims[axis]) {
    return InvalidOp(spec, fmt::format("it selects {} of the {} elements of axis {}", shape.chosen,
                                       dims[axis], axis));
  }
  dims[axis] = shape.chosen;
  CKPLAN_RETURN_IF_ERROR(ValidateOutputs(spec, dims));
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
  static constexpr FamilyRow kRows[] = {{"TopK", ValidateBy<ReadTopKShape>}};
  return kRows;
}

}  // namespace ckplan
