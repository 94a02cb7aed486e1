#include "lib/problem/ops/join.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

// Checks that a part has the dimensions of the whole, except along the axis.
Result<Done> JudgePart(const OpSpec& spec, const Operand& part, const Operand& whole, size_t axis,
                       size_t position) {
  const std::string name = fmt::format("part {}", position);
  Dims expected = whole.dims;
  if (part.dims.size() == expected.size()) expected[axis] = part.dims[axis];
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, part, name, expected));
  return RequireType(spec, part, name, whole.type);
}

Result<JoinShape> ReadParts(const OpSpec& spec, const Operand& whole,
                            const std::vector<Operand>& parts, size_t axis) {
  const AxisView view = ViewAlong(whole.dims, axis);
  JoinShape shape;
  shape.rows = view.outer;
  shape.row_size = view.size * view.inner;
  int64_t sizes = 0;  // Sum of the sizes of the parts along the axis.
  for (size_t i = 0; i < parts.size(); ++i) {
    shape.begin.push_back(sizes * view.inner);
    if (parts[i].is_present) {
      CKPLAN_RETURN_IF_ERROR(JudgePart(spec, parts[i], whole, axis, i));
      sizes += parts[i].dims[axis];
      // The sum is checked at each part, so that many parts cannot make it overflow.
      if (sizes > view.size) break;
    }
    shape.size.push_back(parts[i].is_present ? parts[i].dims[axis] * view.inner : 0);
  }
  if (sizes == view.size) return shape;
  const bool lacks_some =
      std::any_of(parts.begin(), parts.end(), [](const Operand& part) { return !part.is_present; });
  if (lacks_some && sizes < view.size) {
    return UnsupportedOp(spec, "one of its outputs has no name, so that its size is unknown");
  }
  return InvalidOp(spec, fmt::format("its parts have {}{} elements along axis {}, and the whole "
                                     "has {}",
                                     sizes > view.size ? "at least " : "", sizes, axis, view.size));
}

}  // namespace

Result<JoinShape> ReadConcatShape(const OpSpec& spec) {
  if (spec.inputs.empty()) return InvalidOp(spec, "it has no inputs");
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, spec.inputs.size()));
  const Operand& whole = spec.output(0);
  // Before opset 4 the axis could be left out.
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", 1), whole.dims.size()));
  return ReadParts(spec, whole, spec.inputs, axis);
}

// The sizes of the outputs determine where the input is cut.
Result<JoinShape> ReadSplitShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1, 0));
  const Operand& whole = spec.input(0);
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", 0), whole.dims.size()));
  return ReadParts(spec, whole, spec.outputs, axis);
}

std::span<const FamilyRow> JoinFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Concat", JudgeBy<ReadConcatShape>},
      {"Split", JudgeBy<ReadSplitShape>},
  };
  return kRows;
}

}  // namespace ckplan
