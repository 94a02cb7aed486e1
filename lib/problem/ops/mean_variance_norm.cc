#include "lib/problem/ops/mean_variance_norm.h"

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

Result<MeanVarianceNormShape> ReadMeanVarianceNormShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  std::vector<bool> is_reduced(x.size(), false);
  const Dims axes = spec.Has("axes") ? spec.Ints("axes") : Dims{0, 2, 3};
  for (const int64_t axis : axes) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t normal, NormalAxis(spec, axis, x.size()));
    is_reduced[normal] = true;
  }
  MeanVarianceNormShape shape;
  size_t i = 0;
  for (; i < x.size() && is_reduced[i]; ++i) shape.samples *= x[i];
  for (; i < x.size() && !is_reduced[i]; ++i) shape.channels *= x[i];
  for (; i < x.size() && is_reduced[i]; ++i) shape.positions *= x[i];
  if (i < x.size()) return UnsupportedOp(spec, "the axes that it keeps are not neighbours");
  return shape;
}

std::span<const FamilyRow> MeanVarianceNormFamily() {
  static constexpr FamilyRow kRows[] = {
      {"MeanVarianceNormalization", JudgeBy<ReadMeanVarianceNormShape>, "kept axes in one piece"},
  };
  return kRows;
}

}  // namespace ckplan
