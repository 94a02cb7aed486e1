// MeanVarianceNormalization. It has no scale and bias, and backward recomputes the moments.
#include <algorithm>

#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/ops/channel_moments.h"
#include "lib/executor/cuda/workspace.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cuda {

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
