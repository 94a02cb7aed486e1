#include "lib/problem/ops/group_norm.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

namespace {

// Checks that there is a scale and a bias for each channel. Up to opset 20, GroupNormalization has
// one for each group instead.
Result<Done> CheckParameters(const OpSpec& spec, const GroupNormShape& shape) {
  const bool is_by_group = spec.type == "GroupNormalization" && spec.opset < 21;
  const int64_t count = is_by_group ? shape.groups : shape.channels();
  const Dims& scale = spec.input(1).dims;
  if (scale != Dims{count}) {
    return InvalidOp(
        spec, fmt::format("its scale is {}; in opset {} it needs one for each of its {} {}",
                          TextOf(scale), spec.opset, count, is_by_group ? "groups" : "channels"));
  }
  return RequireDims(spec, spec.input(2), "its bias", scale);
}

}  // namespace

Result<GroupNormShape> ReadGroupNormShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 3));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  if (x.size() < 2) return InvalidOp(spec, "its input has no axis of channels");
  GroupNormShape shape;
  shape.samples = x[0];
  shape.groups = spec.type == "InstanceNormalization" ? x[1] : spec.Int("num_groups", 1);
  if (shape.groups < 1 || x[1] % shape.groups != 0) {
    return InvalidOp(
        spec, fmt::format("attribute num_groups is {}, which does not divide its {} channels",
                          shape.groups, x[1]));
  }
  shape.group_channels = x[1] / shape.groups;
  shape.positions = Product({x.begin() + 2, x.end()});
  CKPLAN_RETURN_IF_ERROR(CheckParameters(spec, shape));
  shape.scale_channels = x[1] / spec.input(1).elements();
  CKPLAN_RETURN_IF_ERROR(RequireKeptScale(spec));
  CKPLAN_RETURN_IF_ERROR(RequireStatistic(spec, {shape.samples, shape.groups, kMomentBytes}));
  shape.epsilon = static_cast<float>(spec.Float("epsilon", 1e-5));
  shape.has_statistic = spec.statistic_bytes > 0;
  return shape;
}

std::span<const FamilyRow> GroupNormFamily() {
  static constexpr FamilyRow kRows[] = {
      {"GroupNormalization", JudgeBy<ReadGroupNormShape>},
      {"InstanceNormalization", JudgeBy<ReadGroupNormShape>},
  };
  return kRows;
}

}  // namespace ckplan
