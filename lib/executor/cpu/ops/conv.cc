// Conv and ConvTranspose.
#include <algorithm>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/ops/conv_kernel.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/sum.h"

namespace ckplan::cpu {

namespace {

// Adds bias[c] to each element of channel c.
void AddBias(float* y, const float* bias, int64_t batch, int64_t channels, int64_t positions) {
  const int64_t grain = std::max<int64_t>(1, kGrain / positions);
  ParallelFor(batch * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float value = bias[row % channels];
      float* at = y + row * positions;
      for (int64_t i = 0; i < positions; ++i) at[i] += value;
    }
  });
}

// Sums each channel over samples and positions.
void SumChannels(const float* y, float* sums, int64_t batch, int64_t channels, int64_t positions) {
  const int64_t grain = std::max<int64_t>(1, kGrain / (batch * positions));
  ParallelFor(channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0;
      for (int64_t n = 0; n < batch; ++n) {
        sum += Sum(y + (n * channels + c) * positions, positions);
      }
      sums[c] = static_cast<float>(sum);
    }
  });
}

class ConvOp final : public PreparedOp {
 public:
  ConvOp(const OpSpec& spec, const ConvShape& shape)
      : is_transposed_(shape.is_transposed),
        has_bias_(shape.has_bias),
        batch_(shape.batch),
        channels_(is_transposed_ ? shape.in_channels : shape.out_channels),
        positions_(Product(is_transposed_ ? shape.window.in : shape.window.out)),
        forward_(
            MakeConvKernel(shape, is_transposed_ ? ConvJob::kBackwardData : ConvJob::kForward)) {
    if (spec.input(0).has_gradient) {
      data_ = MakeConvKernel(shape, is_transposed_ ? ConvJob::kForward : ConvJob::kBackwardData);
    }
    if (spec.input(1).has_gradient) weights_ = MakeConvKernel(shape, ConvJob::kBackwardWeights);
  }

  OpWorkspace workspace() const override {
    return {forward_->workspace(),
            std::max(data_ ? data_->workspace() : 0, weights_ ? weights_->workspace() : 0)};
  }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    auto* y = static_cast<float*>(call.outputs[0]);
    const float* x = Floats(call.inputs[0]);
    const float* w = Floats(call.inputs[1]);
    forward_->Run(is_transposed_ ? w : x, is_transposed_ ? x : w, y, call.workspace);
    if (has_bias_) AddBias(y, Floats(call.inputs[2]), batch_, channels_, positions_);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const float* dy = Floats(call.output_gradients[0]);
    auto* result = static_cast<float*>(gradient);
    if (position == 0) {
      const float* w = Floats(call.inputs[1]);
      data_->Run(is_transposed_ ? dy : w, is_transposed_ ? w : dy, result, call.workspace);
    } else if (position == 1) {
      const float* x = Floats(call.inputs[0]);
      weights_->Run(is_transposed_ ? dy : x, is_transposed_ ? x : dy, result, call.workspace);
    } else {
      SumChannels(dy, result, batch_, channels_, positions_);
    }
  }

 private:
  bool is_transposed_;
  bool has_bias_;
  int64_t batch_, channels_, positions_;  // Dimensions of the output.
  std::unique_ptr<ConvKernel> forward_, data_, weights_;
};

Result<std::unique_ptr<PreparedOp>> PrepareConv(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ConvShape shape, ReadConvShape(spec));
  return Guarded(spec, [&] { return std::make_unique<ConvOp>(spec, shape); });
}

constexpr OpRow kConvOps[] = {{"Conv", PrepareConv}, {"ConvTranspose", PrepareConv}};

}  // namespace

std::span<const OpRow> ConvOps() { return kConvOps; }

}  // namespace ckplan::cpu
