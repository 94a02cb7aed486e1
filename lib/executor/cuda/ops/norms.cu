// BatchNormalization, always with the batch's statistics: a training step runs even if the model
// was exported for inference. The running statistics are not part of the step; outputs 1 and 2, if
// used, receive the batch's statistics.
//
// Forward and backward are one reduction and one pass each.

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

}  // namespace ckplan::cuda
