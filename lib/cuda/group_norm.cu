// GroupNormalization, and InstanceNormalization, whose groups are the channels: each group of
// channels of each sample is normalised by its own moments.
#include "lib/backend/layout.h"
#include "lib/cuda/families.h"
#include "lib/cuda/index.h"
#include "lib/cuda/moments.h"
#include "lib/cuda/reduce.h"

namespace ckplan::cuda {

namespace {

struct Shape {
  int64_t samples = 1, groups = 1, positions = 1;
  int64_t group_channels = 1;  // Channels of one group.
  int64_t scale_channels = 1;  // Channels that share a scale and a bias.

  int64_t channels() const { return groups * group_channels; }
  int64_t group_size() const { return group_channels * positions; }
};

Shape ShapeOf(const OpSpec& spec) {
  const Dims& dims = spec.input(0).dims;
  Shape shape;
  shape.samples = dims[0];
  shape.groups = spec.type == "InstanceNormalization" ? dims[1] : spec.Int("num_groups", 1);
  shape.group_channels = dims[1] / shape.groups;
  shape.positions = Product({dims.begin() + 2, dims.end()});
  shape.scale_channels = dims[1] / spec.input(1).elements();  // Up to opset 20, one for a group.
  return shape;
}

// Of the scale and bias of element i of a group, which counts through all samples.
class ParameterIndex {
 public:
  explicit ParameterIndex(const Shape& shape)
      : group_channels_(shape.group_channels),
        groups_(shape.groups),
        positions_(shape.positions),
        scale_channels_(shape.scale_channels) {}
  CKPLAN_DEVICE int64_t At(int64_t group, int64_t i) const {
    groups_.Split(group);
    return scale_channels_.Quotient(group * group_channels_ + positions_.Quotient(i));
  }

 private:
  int64_t group_channels_;
  Divider groups_, positions_, scale_channels_;
};

// Where the elements of a parameter are: those of its channels, in all samples.
class ParameterElements {
 public:
  explicit ParameterElements(const Shape& shape)
      : channels_(shape.channels()),
        groups_(shape.groups),
        scale_channels_(shape.scale_channels),
        group_channels_(shape.group_channels),
        positions_(shape.positions),
        span_(shape.scale_channels * shape.positions) {}
  // Element i of the parameter, and, through `group`, the group of it.
  CKPLAN_DEVICE int64_t At(int64_t parameter, int64_t i, int64_t& group) const {
    const int64_t sample = span_.Split(i);
    const int64_t channel = parameter * scale_channels_ + positions_.Split(i);
    group = sample * groups_ + group_channels_.Quotient(channel);
    return (sample * channels_ + channel) * positions_.divisor() + i;
  }

 private:
  int64_t channels_, groups_, scale_channels_;
  Divider group_channels_, positions_, span_;
};

class GroupNormOp final : public PreparedOp {
 public:
  GroupNormOp(const OpSpec& spec, Device& device, const Shape& shape)
      : device_(device),
        shape_(shape),
        parameters_(ReduceShape::Of(shape.channels() / shape.scale_channels,
                                    shape.samples * shape.scale_channels * shape.positions, false)),
        epsilon_(static_cast<float>(spec.Float("epsilon", 1e-5))),
        wants_parameters_(spec.input(1).has_gradient || spec.input(2).has_gradient),
        x_type_(spec.input(0).type),
        scale_type_(spec.input(1).type),
        bias_type_(spec.input(2).type),
        y_type_(spec.output(0).type) {}

  OpWorkspace workspace() const override {
    return {0, wants_parameters_ ? parameters_.workspace<float>() : 0};
  }

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_), scale(call.inputs[1], scale_type_);
    const FloatsIn bias(call.inputs[2], bias_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    auto* saved = static_cast<Moments*>(call.statistic);
    const ParameterIndex parameters(shape_);
    const int64_t size = shape_.group_size();
    const float epsilon = epsilon_;
    ForRows(device_, groups(), size, [=] CKPLAN_KERNEL(const Team& team, int64_t group) {
      const int64_t first = group * size;
      const Moments moments =
          MomentsOf(team, size, epsilon, true, [&](int64_t i) { return x[first + i]; });
      if (team.IsFirst() && saved != nullptr) saved[group] = moments;
      if (y.is_null()) return;
      team.ForEach(size, [&](int64_t i) {
        const int64_t parameter = parameters.At(group, i);
        const float factor = scale[parameter] * moments.inverse;
        y.Set(first + i, (x[first + i] - moments.mean) * factor + bias[parameter]);
      });
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), dy(call.output_gradients[0], y_type_);
    const auto* saved = static_cast<const Moments*>(call.statistic);
    if (position == 0) {
      PassGroups(x, dy, FloatsIn(call.inputs[1], scale_type_), saved, FloatsOut(gradient, x_type_));
    } else if (position == 1) {
      SumScales(x, dy, saved, FloatsOut(gradient, scale_type_), call.workspace);
    } else {
      SumBiases(dy, FloatsOut(gradient, bias_type_), call.workspace);
    }
  }

  // Kernels may not be in private methods.
  void PassGroups(FloatsIn x, FloatsIn dy, FloatsIn scale, const Moments* saved, FloatsOut dx) {
    const ParameterIndex parameters(shape_);
    const int64_t size = shape_.group_size();
    ForRows(device_, groups(), size, [=] CKPLAN_KERNEL(const Team& team, int64_t group) {
      const int64_t first = group * size;
      PassRow(
          team, size, saved[group], true, [&](int64_t i) { return x[first + i]; },
          [&](int64_t i) { return dy[first + i] * scale[parameters.At(group, i)]; },
          [&](int64_t i, float value) { dx.Set(first + i, value); });
    });
  }

  void SumScales(FloatsIn x, FloatsIn dy, const Moments* saved, FloatsOut dscale, void* workspace) {
    const ParameterElements elements(shape_);
    Reduce(
        device_, parameters_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t parameter, int64_t i) {
          int64_t group = 0;
          const int64_t at = elements.At(parameter, i, group);
          const Moments moments = saved[group];
          return dy[at] * (x[at] - moments.mean) * moments.inverse;
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t i, float sum) { dscale.Set(i, sum); }, workspace);
  }

  void SumBiases(FloatsIn dy, FloatsOut dbias, void* workspace) {
    const ParameterElements elements(shape_);
    Reduce(
        device_, parameters_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t parameter, int64_t i) {
          int64_t group = 0;
          return dy[elements.At(parameter, i, group)];
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t i, float sum) { dbias.Set(i, sum); }, workspace);
  }

 private:
  int64_t groups() const { return shape_.samples * shape_.groups; }

  Device& device_;
  Shape shape_;
  ReduceShape parameters_;
  float epsilon_;
  bool wants_parameters_;
  ElementType x_type_, scale_type_, bias_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec, Device& device) {
  if (spec.input(0).elements() == 0) return Unsupported(spec, "its input is empty");
  if (spec.input(0).has_gradient && !spec.input(1).is_read_by_backward) {
    return Unsupported(spec, "its scale is computed in the step, and not kept for backward");
  }
  return Prepared<GroupNormOp>(spec, device, ShapeOf(spec));
}

constexpr OpRow kRows[] = {{"GroupNormalization", Prepare}, {"InstanceNormalization", Prepare}};

}  // namespace

std::span<const OpRow> GroupNormOps() { return kRows; }

}  // namespace ckplan::cuda
