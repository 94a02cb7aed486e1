// MeanVarianceNormalization. It has no scale and bias, and backward recomputes the moments.
#include <algorithm>
#include <cmath>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/ops/moments.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cpu {

namespace {

constexpr double kEpsilon = 1e-9;  // Added to the deviation, as ONNX defines it.

class MeanVarianceNormOp final : public PreparedOp {
 public:
  explicit MeanVarianceNormOp(const MeanVarianceNormShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    ForChannels([&](int64_t c) {
      const Moments moments = MomentsOfChannel(Floats(call.inputs[0]), c);
      for (int64_t n = 0; n < shape_.samples; ++n) {
        const float* x = Floats(call.inputs[0]) + shape_.offset(n, c);
        float* y = Floats(call.outputs[0]) + shape_.offset(n, c);
        for (int64_t i = 0; i < shape_.positions; ++i) {
          y[i] = (x[i] - moments.mean) * moments.inverse_deviation;
        }
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    ForChannels([&](int64_t c) {
      const Moments moments = MomentsOfChannel(Floats(call.inputs[0]), c);
      const auto for_samples = [&](const auto& body) {
        for (int64_t n = 0; n < shape_.samples; ++n) {
          const int64_t at = shape_.offset(n, c);
          const float* dy = Floats(call.output_gradients[0]) + at;
          body(
              Floats(call.inputs[0]) + at, [dy](int64_t i) { return dy[i]; }, at);
        }
      };
      GradientSums sums;
      for_samples([&](const float* x, const auto& g, int64_t) {
        const GradientSums own = SumGradients(x, moments, shape_.positions, g);
        sums.gradient += own.gradient;
        sums.product += own.product;
      });
      for_samples([&](const float* x, const auto& g, int64_t at) {
        PassGradients(x, moments, sums, shape_.channel_size(), shape_.positions, g,
                      Floats(gradient) + at);
      });
    });
  }

 private:
  template <typename Body>
  void ForChannels(const Body& body) const {
    ParallelFor(shape_.channels, std::max<int64_t>(1, kGrain / 4 / shape_.channel_size()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t c = begin; c < end; ++c) body(c);
                });
  }

  Moments MomentsOfChannel(const float* x, int64_t channel) const {
    const auto count = static_cast<double>(shape_.channel_size());
    double sum = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      sum += Sum(x + shape_.offset(n, channel), shape_.positions);
    }
    Moments moments;
    moments.mean = static_cast<float>(sum / count);
    const float mean = moments.mean;
    double squares = 0;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      const float* at = x + shape_.offset(n, channel);
      squares += SumTerms(shape_.positions,
                          [at, mean](int64_t i) { return (at[i] - mean) * (at[i] - mean); });
    }
    moments.inverse_deviation = static_cast<float>(1 / (std::sqrt(squares / count) + kEpsilon));
    return moments;
  }

  MeanVarianceNormShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareMeanVarianceNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const MeanVarianceNormShape shape, ReadMeanVarianceNormShape(spec));
  return Prepared<MeanVarianceNormOp>(shape);
}

constexpr OpRow kMeanVarianceNormOps[] = {{"MeanVarianceNormalization", PrepareMeanVarianceNorm}};

}  // namespace

std::span<const OpRow> MeanVarianceNormOps() { return kMeanVarianceNormOps; }

}  // namespace ckplan::cpu
