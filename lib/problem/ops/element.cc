#include "lib/problem/ops/element.h"

#include <fmt/format.h>

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/gather.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

Result<Done> JudgeGather(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 2));
  CKPLAN_RETURN_IF_ERROR(ReadElementAxis(spec));
  return RequireDims(spec, spec.output(0), "its output", spec.input(1).dims);
}

Result<Done> JudgeScatter(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  CKPLAN_RETURN_IF_ERROR(ReadElementAxis(spec));
  CKPLAN_RETURN_IF_ERROR(ReadScattering(spec));
  CKPLAN_RETURN_IF_ERROR(
      RequireDims(spec, spec.input(2), "its tensor of updates", spec.input(1).dims));
  CKPLAN_RETURN_IF_ERROR(
      RequireType(spec, spec.input(2), "its tensor of updates", spec.input(0).type));
  return RequireDims(spec, spec.output(0), "its output", spec.input(0).dims);
}

}  // namespace

Result<size_t> ReadElementAxis(const OpSpec& spec) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  CKPLAN_RETURN_IF_ERROR(RequireIndices(spec, spec.input(1), "its tensor of indices"));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.output(0), "its output", spec.input(0).type));
  if (data.size() != indices.size()) {
    return InvalidOp(
        spec, fmt::format("its indices have {} axes and its data {}", indices.size(), data.size()));
  }
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", 0), data.size()));
  for (size_t i = 0; i < data.size(); ++i) {
    if (i == axis || indices[i] <= data[i]) continue;
    return InvalidOp(spec, fmt::format("its indices {} reach beyond its data {} along axis {}",
                                       TextOf(indices), TextOf(data), i));
  }
  return axis;
}

std::span<const FamilyRow> ElementFamily() {
  static constexpr FamilyRow kRows[] = {
      {"GatherElements", JudgeGather},
      {"ScatterElements", JudgeScatter, "no gradient of reductions other than none and add"},
      {"Scatter", JudgeScatter},
  };
  return kRows;
}

}  // namespace ckplan
