#include "lib/problem/ops/norms.h"

#include <fmt/format.h>

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

Result<Done> CheckOutputs(const OpSpec& spec) {
  if (spec.Int("spatial", 1) == 0) {
    return UnsupportedOp(spec, "its attribute spatial is 0, which opset 9 removed");
  }
  for (size_t i = 1; i < spec.outputs.size(); ++i) {
    if (spec.outputs[i].has_gradient) return UnsupportedOp(spec, "its statistics need a gradient");
    if (i > 2 && spec.outputs[i].is_present) return UnsupportedOp(spec, "it has saved outputs");
  }
  return RequireKeptScale(spec);
}

Result<ChannelView> ReadChannels(const OpSpec& spec) {
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
  CKPLAN_ASSIGN_OR_RETURN(shape.view, ReadChannels(spec));
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
      {"BatchNormalization", ValidateBy<ReadBatchNormShape>, "only with the batch's statistics"},
  };
  return kRows;
}

namespace {

// Scale and bias must have one element per channel or, in GroupNormalization up to opset 20, per
// group.
Result<Done> CheckParameters(const OpSpec& spec, const GroupNormShape& shape) {
  const bool has_group_parameters = spec.type == "GroupNormalization" && spec.opset < 21;
  const int64_t count = has_group_parameters ? shape.groups : shape.channels();
  const Dims& scale = spec.input(1).dims;
  if (scale != Dims{count}) {
    return InvalidOp(spec,
                     fmt::format("its scale is {}; in opset {} it needs one for each of its {} {}",
                                 TextOf(scale), spec.opset, count,
                                 has_group_parameters ? "groups" : "channels"));
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
      {"GroupNormalization", ValidateBy<ReadGroupNormShape>},
      {"InstanceNormalization", ValidateBy<ReadGroupNormShape>},
  };
  return kRows;
}

namespace {

Dims StripLeadingOnes(Dims dims) {
  while (!dims.empty() && dims.front() == 1) dims.erase(dims.begin());
  return dims;
}

// Requires the shape of a row. ONNX broadcasts scales and biases, but our kernels do not.
Result<Done> CheckParameter(const OpSpec& spec, const Operand& operand, std::string_view name,
                            const Dims& row) {
  const Dims dims = StripLeadingOnes(operand.dims);
  if (!operand.is_present || dims == StripLeadingOnes(row)) return Done{};
  bool is_broadcast = dims.size() <= row.size();
  for (size_t i = 0; is_broadcast && i < dims.size(); ++i) {
    const int64_t dim = row[row.size() - dims.size() + i];
    is_broadcast = dims[i] == 1 || dims[i] == dim;
  }
  if (!is_broadcast) return RequireDims(spec, operand, name, row);
  return UnsupportedOp(spec, fmt::format("{} is {} and is broadcast to {}", name,
                                         TextOf(operand.dims), TextOf(row)));
}

Result<Done> CheckOutputs(const OpSpec& spec, const LayerNormShape& shape) {
  for (size_t i = 1; i < spec.outputs.size(); ++i) {
    const Operand& moments = spec.outputs[i];
    if (!moments.is_present) continue;
    if (moments.has_gradient) return UnsupportedOp(spec, "its moments need a gradient");
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, moments, "an output of moments"));
    CKPLAN_RETURN_IF_ERROR(RequireElements(spec, moments, "an output of moments", shape.rows));
  }
  return RequireKeptScale(spec);
}

}  // namespace

Result<LayerNormShape> ReadLayerNormShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", -1), x.size()));
  const Dims row(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
  LayerNormShape shape;
  shape.has_mean = spec.type == "LayerNormalization";
  shape.has_bias = spec.input(2).is_present;
  shape.size = Product(row);
  shape.rows = spec.input(0).elements() / shape.size;
  shape.epsilon = static_cast<float>(spec.Float("epsilon", 1e-5));
  CKPLAN_RETURN_IF_ERROR(CheckParameter(spec, spec.input(1), "its scale", row));
  CKPLAN_RETURN_IF_ERROR(CheckParameter(spec, spec.input(2), "its bias", row));
  CKPLAN_RETURN_IF_ERROR(CheckOutputs(spec, shape));
  CKPLAN_RETURN_IF_ERROR(
      RequireStatistic(spec, {shape.rows, (shape.has_mean ? 2 : 1) * kFloatBytes}));
  return shape;
}

std::span<const FamilyRow> LayerNormFamily() {
  static constexpr FamilyRow kRows[] = {
      {"LayerNormalization", ValidateBy<ReadLayerNormShape>,
       "scale and bias of the normalised shape"},
      {"RMSNormalization", ValidateBy<ReadLayerNormShape>, "scale of the normalised shape"},
  };
  return kRows;
}

namespace {

// A pool treats each channel of each sample as one line.
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
      {"GlobalLpPool", ValidateBy<ReadLpNormShape>},
      {"LpNormalization", ValidateBy<ReadLpNormShape>},
  };
  return kRows;
}

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
      {"LRN", ValidateBy<ReadLrnShape>},
  };
  return kRows;
}

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
  if (i < x.size()) return UnsupportedOp(spec, "the axes that it keeps are not adjacent");
  return shape;
}

std::span<const FamilyRow> MeanVarianceNormFamily() {
  static constexpr FamilyRow kRows[] = {
      {"MeanVarianceNormalization", ValidateBy<ReadMeanVarianceNormShape>,
       "the kept axes must be adjacent"},
  };
  return kRows;
}

}  // namespace ckplan
