#include "lib/problem/ops/lp_norm.h"

#include <fmt/format.h>

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

namespace {

// Pools treat each channel of each sample as one line.
Result<AxisView> ReadPoolView(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  if (x.size() < 2) return InvalidOp(spec, "its input has no axis of channels");
  Dims expected(x.size(), 1);
  expected[0] = x[0];
  expected[1] = x[1];
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", expected));
  const int64_t lines = x[0] * x[1];
  return AxisView{lines, spec.input(0).elements() / lines, 1};
}

Result<AxisView> ReadLines(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", -1), x.size()));
  return ViewAlong(x, axis);
}

}  // namespace

Result<LpNormShape> ReadLpNormShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1));
  LpNormShape shape;
  CKPLAN_ASSIGN_OR_RETURN(shape.view,
                          spec.type == "GlobalLpPool" ? ReadPoolView(spec) : ReadLines(spec));
  shape.p = spec.Int("p", 2);
  if (shape.p >= 1) return shape;
  return InvalidOp(spec, fmt::format("attribute p is {}; at least 1 is needed", shape.p));
}

std::span<const FamilyRow> LpNormFamily() {
  static constexpr FamilyRow kRows[] = {
      {"GlobalLpPool", JudgeBy<ReadLpNormShape>},
      {"LpNormalization", JudgeBy<ReadLpNormShape>},
  };
  return kRows;
}

}  // namespace ckplan
