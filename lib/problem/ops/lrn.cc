#include "lib/problem/ops/lrn.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

Result<LrnShape> ReadLrnShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  if (x.size() < 2) return InvalidOp(spec, "its input has no axis of channels");
  LrnShape shape;
  shape.view = {x[0], x[1], Product({x.begin() + 2, x.end()})};
  shape.size = spec.Int("size", 0);
  if (shape.size < 1) {
    return InvalidOp(spec,
                     fmt::format("attribute size is {}; at least 1 channel is needed", shape.size));
  }
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "attribute size", shape.size));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of its channels", x[1]));
  shape.factor = static_cast<float>(spec.Float("alpha", 1e-4) / static_cast<double>(shape.size));
  shape.beta = static_cast<float>(spec.Float("beta", 0.75));
  shape.bias = static_cast<float>(spec.Float("bias", 1));
  return shape;
}

std::span<const FamilyRow> LrnFamily() {
  static constexpr FamilyRow kRows[] = {
      {"LRN", JudgeBy<ReadLrnShape>},
  };
  return kRows;
}

}  // namespace ckplan
