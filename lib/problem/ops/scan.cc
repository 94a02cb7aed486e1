#include "lib/problem/ops/scan.h"

#include <fmt/format.h>

#include <optional>

#include "lib/problem/ops/judge.h"

namespace ckplan {

Result<CumSumShape> ReadCumSumShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> axes, KnownInts(spec, 1, "axis"));
  if (!axes.has_value() || axes->size() != 1) return InvalidOp(spec, "it has no single axis");
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
    return InvalidOp(spec,
                     fmt::format("axis {} has no elements, of which one could be found", axis));
  }
  return ArgShape{view, spec.type == "ArgMax", spec.Int("select_last_index", 0) != 0};
}

// Before opset 13 all axes from the given one on were treated as one.
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
      {"ArgMax", JudgeBy<ReadArgShape>},
      {"ArgMin", JudgeBy<ReadArgShape>},
      {"CumSum", JudgeBy<ReadCumSumShape>},
      {"Hardmax", JudgeBy<ReadHardmaxShape>},
  };
  return kRows;
}

}  // namespace ckplan
