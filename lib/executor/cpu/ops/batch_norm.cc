// BatchNormalization, always with the statistics of the batch, because a training step is run even
// if the model was exported for inference. The running statistics are not part of the step; outputs
// 1 and 2, if used, receive the statistics of this batch.
#include <algorithm>
#include <cmath>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/ops/moments.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cpu {

namespace {

class BatchNormOp final : public PreparedOp {
 public:
  explicit BatchNormOp(const BatchNormShape& shape)
      : shape_(shape.view), epsilon_(shape.epsilon), first_gradient_(shape.first_gradient) {
    sums_ = plan_.Add(shape_.channels * 2 * static_cast<int64_t>(sizeof(float)));
  }

  OpWorkspace workspace() const override { return {0, plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    const float* x = Floats(call.inputs[0]);
    ParallelFor(shape_.channels, Grain(), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) ForwardChannel(call, x, c);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    auto* result = static_cast<float*>(gradient);
    const float* dy = Floats(call.output_gradients[0]);
    const float* x = Floats(call.inputs[0]);
    const auto* moments = static_cast<const float*>(call.statistic);
    float* sums = FloatsAt(call.workspace, sums_);
    ParallelFor(shape_.channels, Grain(), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const Moments channel = {moments[2 * c], moments[2 * c + 1]};
        if (position == first_gradient_) SumChannel(x, dy, channel, c, sums + 2 * c);
        if (position == 1) result[c] = sums[2 * c + 1];
        if (position == 2) result[c] = sums[2 * c];
        if (position != 0) continue;
        BackwardChannel(x, dy, channel, Floats(call.inputs[1])[c], sums + 2 * c, c, result);
      }
    });
  }

 private:
  // Returns the number of channels that make a thread worthwhile.
  int64_t Grain() const { return std::max<int64_t>(1, kGrain / shape_.channel_size()); }

  double SumSamples(const float* x, int64_t channel) const {
    double sum = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      sum += Sum(x + shape_.offset(n, channel), shape_.positions);
    }
    return sum;
  }

  double SumSquares(const float* x, float mean, int64_t channel) const {
    double sum = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* at = x + shape_.offset(n, channel);
      sum += SumTerms(shape_.positions,
                      [at, mean](int64_t i) { return (at[i] - mean) * (at[i] - mean); });
    }
    return sum;
  }

  void ForwardChannel(const ForwardCall& call, const float* x, int64_t c) const {
    const auto count = static_cast<double>(shape_.channel_size());
    const auto mean = static_cast<float>(SumSamples(x, c) / count);
    const auto variance = static_cast<float>(SumSquares(x, mean, c) / count);
    const float inverse = 1 / std::sqrt(variance + epsilon_);
    if (call.statistic != nullptr) {
      auto* moments = static_cast<float*>(call.statistic);
      moments[2 * c] = mean;
      moments[2 * c + 1] = inverse;
    }
    if (call.outputs.size() > 1 && call.outputs[1] != nullptr) {
      static_cast<float*>(call.outputs[1])[c] = mean;
    }
    if (call.outputs.size() > 2 && call.outputs[2] != nullptr) {
      static_cast<float*>(call.outputs[2])[c] = variance;
    }
    if (call.outputs[0] == nullptr) return;
    const float factor = Floats(call.inputs[1])[c] * inverse;
    const float bias = Floats(call.inputs[2])[c];
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* from = x + shape_.offset(n, c);
      float* to = static_cast<float*>(call.outputs[0]) + shape_.offset(n, c);
      for (int64_t i = 0; i < shape_.positions; ++i) to[i] = (from[i] - mean) * factor + bias;
    }
  }

  // Computes sums[0], the sum of dy, which is the gradient of the bias, and sums[1], the sum of dy
  // times the normalised x, which is the gradient of the scale.
  void SumChannel(const float* x, const float* dy, Moments moments, int64_t c, float* sums) const {
    double sum = 0;
    double weighted = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* at = x + shape_.offset(n, c);
      const float* gradient = dy + shape_.offset(n, c);
      sum += Sum(gradient, shape_.positions);
      weighted += SumTerms(shape_.positions, [at, gradient, moments](int64_t i) {
        return gradient[i] * (at[i] - moments.mean);
      });
    }
    sums[0] = static_cast<float>(sum);
    sums[1] = static_cast<float>(weighted * static_cast<double>(moments.inverse_deviation));
  }

  // Computes dx = scale / deviation * (dy - mean(dy) - x̂ mean(dy x̂)), where x̂ is the normalised
  // x.
  void BackwardChannel(const float* x, const float* dy, Moments moments, float scale,
                       const float* sums, int64_t c, float* dx) const {
    const auto count = static_cast<float>(shape_.channel_size());
    const float factor = scale * moments.inverse_deviation;
    const float mean_gradient = sums[0] / count;
    const float slope = sums[1] / count * moments.inverse_deviation;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const int64_t offset = shape_.offset(n, c);
      const float* at = x + offset;
      const float* gradient = dy + offset;
      float* to = dx + offset;
      for (int64_t i = 0; i < shape_.positions; ++i) {
        to[i] = factor * (gradient[i] - mean_gradient - slope * (at[i] - moments.mean));
      }
    }
  }

  ChannelView shape_;
  float epsilon_;
  size_t first_gradient_;  // The first input with a gradient; its call computes the sums.
  WorkspacePlan plan_;
  int64_t sums_ = 0;  // Offset in the workspace: two floats per channel.
};

Result<std::unique_ptr<PreparedOp>> PrepareBatchNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const BatchNormShape shape, ReadBatchNormShape(spec));
  return Prepared<BatchNormOp>(shape);
}

constexpr OpRow kBatchNormOps[] = {{"BatchNormalization", PrepareBatchNorm}};

}  // namespace

std::span<const OpRow> BatchNormOps() { return kBatchNormOps; }

}  // namespace ckplan::cpu
