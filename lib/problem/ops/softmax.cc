#include "lib/problem/ops/softmax.h"

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

Result<SoftmaxShape> ReadSoftmaxShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  const bool is_one_axis = spec.opset >= 13;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", is_one_axis ? -1 : 1), x.size()));
  SoftmaxShape shape = ViewAlong(x, axis);
  if (is_one_axis) return shape;
  shape.size *= shape.inner;
  shape.inner = 1;
  return shape;
}

bool IsGuarded(const OpSpec& spec) { return spec.Int(kGuardAttribute, 0) != 0; }

std::span<const FamilyRow> SoftmaxFamily() {
  static constexpr FamilyRow kRows[] = {
      {"LogSoftmax", JudgeBy<ReadSoftmaxShape>},
      {"Softmax", JudgeBy<ReadSoftmaxShape>},
  };
  return kRows;
}

}  // namespace ckplan
