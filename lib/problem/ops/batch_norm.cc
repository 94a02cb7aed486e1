#include "lib/problem/ops/batch_norm.h"

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

namespace {

Result<Done> CheckOutputs(const OpSpec& spec) {
  if (spec.Int("spatial", 1) == 0) {
    return UnsupportedOp(spec, "its attribute spatial is 0, which opset 9 has abolished");
  }
  for (size_t i = 1; i < spec.outputs.size(); ++i) {
    if (spec.outputs[i].has_gradient) return UnsupportedOp(spec, "its statistics get a gradient");
    if (i > 2 && spec.outputs[i].is_present) return UnsupportedOp(spec, "it has saved outputs");
  }
  return RequireKeptScale(spec);
}

Result<ChannelView> ReadView(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  if (x.empty()) return InvalidOp(spec, "its input has no axes");
  ChannelView view;
  view.samples = x[0];
  view.channels = x.size() > 1 ? x[1] : 1;
  view.positions = spec.input(0).elements() / (view.samples * view.channels);
  if (spec.input(0).is_channels_last) {
    view.samples *= view.positions;
    view.positions = 1;
  }
  return view;
}

Result<Done> CheckParameters(const OpSpec& spec, const Dims& expected) {
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(1), "its scale", expected));
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(2), "its bias", expected));
  CKPLAN_RETURN_IF_ERROR(RequireOptional(spec, spec.input(3), "its running mean", expected));
  CKPLAN_RETURN_IF_ERROR(RequireOptional(spec, spec.input(4), "its running variance", expected));
  CKPLAN_RETURN_IF_ERROR(RequireOptional(spec, spec.output(1), "its second output", expected));
  return RequireOptional(spec, spec.output(2), "its third output", expected);
}

}  // namespace

Result<BatchNormShape> ReadBatchNormShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 3));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(CheckOutputs(spec));
  BatchNormShape shape;
  CKPLAN_ASSIGN_OR_RETURN(shape.view, ReadView(spec));
  CKPLAN_RETURN_IF_ERROR(CheckParameters(spec, {shape.view.channels}));
  CKPLAN_RETURN_IF_ERROR(RequireStatistic(spec, {shape.view.channels, kMomentBytes}));
  shape.epsilon = static_cast<float>(spec.Float("epsilon", 1e-5));
  shape.has_statistic = spec.statistic_bytes > 0;
  if (spec.input(1).has_gradient) shape.first_gradient = 1;
  if (spec.input(0).has_gradient) shape.first_gradient = 0;
  return shape;
}

std::span<const FamilyRow> BatchNormFamily() {
  static constexpr FamilyRow kRows[] = {
      {"BatchNormalization", JudgeBy<ReadBatchNormShape>, "by the batch's statistics"},
  };
  return kRows;
}

}  // namespace ckplan
