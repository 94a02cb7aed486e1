// BatchNormalization, always with the batch's statistics: a training step runs even if the model
// was exported for inference. The running statistics are not part of the step; outputs 1 and 2, if
// used, receive the batch's statistics.
//
// Forward and backward are one reduction and one pass each.
#include <algorithm>

#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/ops/moments.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cuda {

namespace {

struct PassChannel {
  float count;
  const Moments* moments;
  const GradientSums* sums;
  FloatsIn scale;
  struct Line {
    float mean, factor, mean_gradient, slope;
    CKPLAN_DEVICE float operator()(float x, float dy) const {
      return factor * (dy - mean_gradient - slope * (x - mean));
    }
  };
  CKPLAN_DEVICE Line LineOf(int64_t c) const {
    const Moments own = moments[c];
    return {own.mean, scale[c] * own.inverse, sums[c].gradient / count,
            sums[c].product / count * own.inverse * own.inverse};
  }
};

class BatchNormOp final : public PreparedOp {
 public:
  BatchNormOp(const OpSpec& spec, Device& device, const BatchNormShape& shape)
      : device_(device),
        shape_(Channels::Of(shape.view)),
        reduction_(shape_),
        epsilon_(shape.epsilon),
        saves_moments_(shape.has_statistic),
        first_gradient_(shape.first_gradient),
        x_type_(spec.input(0).type),
        scale_type_(spec.input(1).type),
        bias_type_(spec.input(2).type),
        y_type_(spec.output(0).type),
        mean_type_(spec.output(1).type),
        variance_type_(spec.output(2).type) {}

  // Two floats per channel: the moments in forward, unless they are saved as a statistic, and the
  // sums in backward; then the reduction's partial results.
  OpWorkspace workspace() const override {
    return {(saves_moments_ ? 0 : ChannelBytes()) + MomentsWorkspace(reduction_),
            ChannelBytes() + reduction_.workspace<GradientSums>()};
  }

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    auto* moments = static_cast<Moments*>(saves_moments_ ? call.statistic : call.workspace);
    void* parts = saves_moments_ ? call.workspace : AfterChannels(call.workspace);
    FindOwnMoments(call, x, moments, parts);
    if (call.outputs[0] == nullptr) return;
    MapChannels(device_, shape_, FloatsOut(call.outputs[0], y_type_),
                NormaliseChannel{moments, FloatsIn(call.inputs[1], scale_type_),
                                 FloatsIn(call.inputs[2], bias_type_)},
                x);
  }

  // The first requested gradient computes the sums, which later ones reuse.
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), dy(call.output_gradients[0], y_type_);
    const auto* moments = static_cast<const Moments*>(call.statistic);
    auto* sums = static_cast<GradientSums*>(call.workspace);
    if (position == first_gradient_) {
      SumGradients(device_, reduction_, x, dy, moments, sums, AfterChannels(sums));
    }
    if (position == 0) {
      const auto count = static_cast<float>(shape_.channel_size());
      MapChannels(device_, shape_, FloatsOut(gradient, x_type_),
                  PassChannel{count, moments, sums, FloatsIn(call.inputs[1], scale_type_)}, x, dy);
      return;
    }
    const bool is_scale = position == 1;
    const FloatsOut result(gradient, is_scale ? scale_type_ : bias_type_);
    ForEach(device_, shape_.channels, [=] CKPLAN_KERNEL(int64_t c) {
      result.Set(c, is_scale ? sums[c].product * moments[c].inverse : sums[c].gradient);
    });
  }

  // Public, because nvcc does not allow kernels in private methods.
  void FindOwnMoments(const ForwardCall& call, FloatsIn x, Moments* moments, void* parts) {
    const auto output = [&](size_t i) {
      return i < call.outputs.size() ? call.outputs[i] : nullptr;
    };
    const FloatsOut means(output(1), mean_type_), variances(output(2), variance_type_);
    const float epsilon = epsilon_;
    FindMoments(
        device_, reduction_, x, static_cast<float>(shape_.channel_size()), moments,
        [=] CKPLAN_KERNEL(int64_t c, float variance) {
          moments[c].inverse = 1 / sqrtf(variance + epsilon);
          if (!means.is_null()) means.Set(c, moments[c].mean);
          if (!variances.is_null()) variances.Set(c, variance);
        },
        parts);
  }

 private:
  int64_t ChannelBytes() const {
    const int64_t bytes = shape_.channels * static_cast<int64_t>(sizeof(Moments));
    return CeilDiv(bytes, kBufferAlignment) * kBufferAlignment;
  }
  void* AfterChannels(void* workspace) const {
    return static_cast<char*>(workspace) + ChannelBytes();
  }

  Device& device_;
  Channels shape_;
  ChannelReduction reduction_;
  float epsilon_;
  bool saves_moments_;
  size_t first_gradient_;
  ElementType x_type_, scale_type_, bias_type_, y_type_, mean_type_, variance_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareBatchNorm(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const BatchNormShape shape, ReadBatchNormShape(spec));
  return Prepared<BatchNormOp>(spec, device, shape);
}

constexpr OpRow kBatchNormOps[] = {{"BatchNormalization", PrepareBatchNorm}};

}  // namespace

std::span<const OpRow> BatchNormOps() { return kBatchNormOps; }

// GroupNormalization, and InstanceNormalization, whose groups are the channels: each group of
// channels of each sample is normalised by its own moments.
//
// A team of threads normalises one group. If there are only a few, long groups, each is shared by
// many blocks, in several passes.

namespace {

// Maps element i of a group to the index of its scale and bias. Groups are counted over all
// samples.
class ParameterIndex {
 public:
  explicit ParameterIndex(const GroupNormShape& shape)
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

// Maps to the offsets of the elements that share a parameter: all elements of its channels, in all
// samples.
class ParameterElements {
 public:
  explicit ParameterElements(const GroupNormShape& shape)
      : channels_(shape.channels()),
        groups_(shape.groups),
        scale_channels_(shape.scale_channels),
        group_channels_(shape.group_channels),
        positions_(shape.positions),
        span_(shape.scale_channels * shape.positions) {}
  // Returns the offset of element i of the parameter; sets `group` to the group that contains it.
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
  GroupNormOp(const OpSpec& spec, Device& device, const GroupNormShape& shape)
      : device_(device),
        shape_(shape),
        reduction_(Channels{1, shape.samples * shape.groups, shape.group_size()}),
        is_cut_(groups() < kFewGroups && reduction_.is_cut()),
        sums_(ReduceShape::Of(groups(), shape.group_size(), false)),
        parameters_(ReduceShape::Of(shape.parameters(),
                                    shape.samples * shape.scale_channels * shape.positions, false)),
        epsilon_(shape.epsilon),
        saves_moments_(shape.has_statistic),
        wants_parameters_(spec.input(1).has_gradient || spec.input(2).has_gradient),
        x_type_(spec.input(0).type),
        scale_type_(spec.input(1).type),
        bias_type_(spec.input(2).type),
        y_type_(spec.output(0).type) {
    if (!is_cut_) return;
    const int64_t group_bytes = groups() * static_cast<int64_t>(sizeof(Moments));
    forward_moments_ = forward_.Add(saves_moments_ ? 0 : group_bytes);
    forward_parts_ = forward_.Add(MomentsWorkspace(reduction_));
    backward_sums_ = backward_.Add(group_bytes);
    backward_parts_ = backward_.Add(sums_.workspace<GradientSums>());
  }

  OpWorkspace workspace() const override {
    const int64_t of_parameters = wants_parameters_ ? parameters_.workspace<float>() : 0;
    return {forward_.total(), std::max(backward_.total(), of_parameters)};
  }

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_), scale(call.inputs[1], scale_type_);
    const FloatsIn bias(call.inputs[2], bias_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    auto* saved = static_cast<Moments*>(call.statistic);
    if (is_cut_) {
      const Moments* moments = FindOwnMoments(x, saved, call.workspace);
      if (!y.is_null()) Normalise(x, scale, bias, moments, y);
    } else {
      NormaliseGroups(x, scale, bias, saved, y);
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), dy(call.output_gradients[0], y_type_);
    const auto* saved = static_cast<const Moments*>(call.statistic);
    if (position == 0) {
      const FloatsIn scale(call.inputs[1], scale_type_);
      const FloatsOut dx(gradient, x_type_);
      if (is_cut_) {
        Pass(x, dy, scale, saved, SumScaledGradients(x, dy, scale, saved, call.workspace), dx);
      } else {
        PassGroups(x, dy, scale, saved, dx);
      }
    } else if (position == 1) {
      SumScales(x, dy, saved, FloatsOut(gradient, scale_type_), call.workspace);
    } else {
      SumBiases(dy, FloatsOut(gradient, bias_type_), call.workspace);
    }
  }

  // Public, because nvcc does not allow kernels in private methods.
  void NormaliseGroups(FloatsIn x, FloatsIn scale, FloatsIn bias, Moments* saved, FloatsOut y) {
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

  // Computes the moments of each group in separate passes, for groups shared by many blocks.
  const Moments* FindOwnMoments(FloatsIn x, Moments* saved, void* workspace) const {
    auto* moments =
        saves_moments_ ? saved : static_cast<Moments*>(BufferAt(workspace, forward_moments_));
    const float epsilon = epsilon_;
    FindMoments(
        device_, reduction_, x, static_cast<float>(shape_.group_size()), moments,
        [=] CKPLAN_KERNEL(int64_t group, float variance) {
          moments[group].inverse = 1 / sqrtf(variance + epsilon);
        },
        BufferAt(workspace, forward_parts_));
    return moments;
  }

  void Normalise(FloatsIn x, FloatsIn scale, FloatsIn bias, const Moments* moments, FloatsOut y) {
    const ParameterIndex parameters(shape_);
    const Divider size(shape_.group_size());
    ForEach(device_, groups() * size.divisor(), [=] CKPLAN_KERNEL(int64_t at) {
      int64_t i = at;
      const int64_t group = size.Split(i);
      const int64_t parameter = parameters.At(group, i);
      const float factor = scale[parameter] * moments[group].inverse;
      y.Set(at, (x[at] - moments[group].mean) * factor + bias[parameter]);
    });
  }

  const GradientSums* SumScaledGradients(FloatsIn x, FloatsIn dy, FloatsIn scale,
                                         const Moments* saved, void* workspace) const {
    auto* sums = static_cast<GradientSums*>(BufferAt(workspace, backward_sums_));
    const ParameterIndex parameters(shape_);
    const int64_t size = shape_.group_size();
    Reduce(
        device_, sums_, GradientSums{0, 0},
        [=] CKPLAN_KERNEL(int64_t group, int64_t i) {
          const int64_t at = group * size + i;
          const float g = dy[at] * scale[parameters.At(group, i)];
          return GradientSums{g, g * (x[at] - saved[group].mean)};
        },
        MergeGradientSums(), StoreSums{sums}, BufferAt(workspace, backward_parts_));
    return sums;
  }

  void Pass(FloatsIn x, FloatsIn dy, FloatsIn scale, const Moments* saved, const GradientSums* sums,
            FloatsOut dx) {
    const ParameterIndex parameters(shape_);
    const Divider size(shape_.group_size());
    const auto count = static_cast<float>(shape_.group_size());
    ForEach(device_, groups() * size.divisor(), [=] CKPLAN_KERNEL(int64_t at) {
      int64_t i = at;
      const int64_t group = size.Split(i);
      const float g = dy[at] * scale[parameters.At(group, i)];
      dx.Set(at, PassGradient(x[at], g, saved[group], sums[group], count));
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

  static constexpr int64_t kFewGroups = 256;  // This many teams keep a GPU busy.

  Device& device_;
  GroupNormShape shape_;
  ChannelReduction reduction_;  // Treats groups as channels.
  bool is_cut_;
  ReduceShape sums_, parameters_;
  float epsilon_;
  bool saves_moments_, wants_parameters_;
  WorkspacePlan forward_, backward_;
  int64_t forward_moments_ = 0, forward_parts_ = 0, backward_sums_ = 0, backward_parts_ = 0;
  ElementType x_type_, scale_type_, bias_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareGroupNorm(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const GroupNormShape shape, ReadGroupNormShape(spec));
  return Prepared<GroupNormOp>(spec, device, shape);
}

constexpr OpRow kGroupNormOps[] = {{"GroupNormalization", PrepareGroupNorm},
                                   {"InstanceNormalization", PrepareGroupNorm}};

}  // namespace

std::span<const OpRow> GroupNormOps() { return kGroupNormOps; }

// MeanVarianceNormalization. It has no scale and bias, and backward recomputes the moments.

namespace {

// kEpsilon is added to the deviation, not to the variance, as ONNX defines it.
constexpr float kEpsilon = 1e-9F;

struct Normalise {
  const Moments* moments;
  struct Line {
    Moments own;
    CKPLAN_DEVICE float operator()(float x, float) const { return (x - own.mean) * own.inverse; }
  };
  CKPLAN_DEVICE Line LineOf(int64_t c) const { return {moments[c]}; }
};

struct Pass {
  float count;
  const Moments* moments;
  const GradientSums* sums;
  struct Line {
    Moments own;
    GradientSums sums;
    float count;
    CKPLAN_DEVICE float operator()(float x, float dy) const {
      return PassGradient(x, dy, own, sums, count);
    }
  };
  CKPLAN_DEVICE Line LineOf(int64_t c) const { return {moments[c], sums[c], count}; }
};

// Normalises each channel by its own moments.
class MeanVarianceNormOp final : public PreparedOp {
 public:
  MeanVarianceNormOp(const OpSpec& spec, Device& device, const Channels& shape)
      : device_(device),
        shape_(shape),
        reduction_(shape),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {
    moments_ = plan_.Add(shape.channels * static_cast<int64_t>(sizeof(Moments)));
    sums_ = plan_.Add(shape.channels * static_cast<int64_t>(sizeof(GradientSums)));
    parts_ =
        plan_.Add(std::max(MomentsWorkspace(reduction_), reduction_.workspace<GradientSums>()));
  }

  OpWorkspace workspace() const override { return {plan_.total(), plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    const FloatsIn x(call.inputs[0], x_type_);
    const Moments* moments = FindOwnMoments(x, call.workspace);
    MapChannels(device_, shape_, FloatsOut(call.outputs[0], y_type_), Normalise{moments}, x);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), dy(call.output_gradients[0], y_type_);
    const Moments* moments = FindOwnMoments(x, call.workspace);
    auto* sums = static_cast<GradientSums*>(BufferAt(call.workspace, sums_));
    SumGradients(device_, reduction_, x, dy, moments, sums, BufferAt(call.workspace, parts_));
    const auto count = static_cast<float>(shape_.channel_size());
    MapChannels(device_, shape_, FloatsOut(gradient, x_type_), Pass{count, moments, sums}, x, dy);
  }

  // Public, because nvcc does not allow kernels in private methods.
  const Moments* FindOwnMoments(FloatsIn x, void* workspace) const {
    auto* moments = static_cast<Moments*>(BufferAt(workspace, moments_));
    FindMoments(
        device_, reduction_, x, static_cast<float>(shape_.channel_size()), moments,
        [=] CKPLAN_KERNEL(int64_t c, float variance) {
          moments[c].inverse = 1 / (sqrtf(variance) + kEpsilon);
        },
        BufferAt(workspace, parts_));
    return moments;
  }

 private:
  Device& device_;
  Channels shape_;
  ChannelReduction reduction_;
  WorkspacePlan plan_;
  int64_t moments_ = 0, sums_ = 0, parts_ = 0;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareMeanVarianceNorm(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const MeanVarianceNormShape shape, ReadMeanVarianceNormShape(spec));
  return Prepared<MeanVarianceNormOp>(spec, device, Channels::Of(shape));
}

constexpr OpRow kMeanVarianceNormOps[] = {{"MeanVarianceNormalization", PrepareMeanVarianceNorm}};

}  // namespace

std::span<const OpRow> MeanVarianceNormOps() { return kMeanVarianceNormOps; }

}  // namespace ckplan::cuda
