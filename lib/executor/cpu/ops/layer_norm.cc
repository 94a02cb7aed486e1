// LayerNormalization and RMSNormalization: rows normalised by their own moments.
#include <algorithm>

#include "lib/executor/cpu/column_sums.h"
#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/ops/moments.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cpu {

namespace {

// Returns the moments of RMSNormalization: the mean is taken as 0, and the deviation is the root
// mean square.
Moments RootMeanSquareOf(const float* x, int64_t count, float epsilon) {
  const double squares = SumTerms(count, [x](int64_t i) { return x[i] * x[i]; });
  const auto mean = static_cast<float>(squares / static_cast<double>(count));
  return {0, 1 / std::sqrt(mean + epsilon)};
}

template <bool kHasMean>
class RowNormOp final : public PreparedOp {
 public:
  explicit RowNormOp(const LayerNormShape& shape)
      : rows_(shape.rows), size_(shape.size), epsilon_(shape.epsilon) {}

  void Forward(const ForwardCall& call) override {
    ForRows([&](int64_t row) {
      const float* x = Floats(call.inputs[0]) + row * size_;
      const Moments moments =
          kHasMean ? MomentsOf(x, size_, epsilon_) : RootMeanSquareOf(x, size_, epsilon_);
      Save(moments, row, Floats(call.statistic));
      for (size_t i = 1; i < call.outputs.size(); ++i) {
        if (call.outputs[i] == nullptr) continue;
        Floats(call.outputs[i])[row] = i == 1 ? moments.mean : moments.inverse_deviation;
      }
      if (call.outputs[0] == nullptr) return;
      const bool has_bias = call.inputs.size() > 2 && call.inputs[2] != nullptr;
      Normalise(x, moments, Floats(call.inputs[1]), has_bias ? Floats(call.inputs[2]) : nullptr,
                Floats(call.outputs[0]) + row * size_);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const float* dy = Floats(call.output_gradients[0]);
    const float* x = Floats(call.inputs[0]);
    const float* saved = Floats(call.statistic);
    float* result = Floats(gradient);
    if (position == 0) {
      const float* scale = Floats(call.inputs[1]);
      ForRows([&](int64_t row) {
        const int64_t at = row * size_;
        PassRow(x + at, dy + at, scale, Saved(saved, row), result + at);
      });
    } else if (position == 1) {
      SumColumns(rows_, size_, result, [&](int64_t row, int64_t i) {
        const Moments moments = Saved(saved, row);
        const int64_t at = row * size_ + i;
        return dy[at] * (x[at] - moments.mean) * moments.inverse_deviation;
      });
    } else {
      SumColumns(rows_, size_, result, [&](int64_t row, int64_t i) { return dy[row * size_ + i]; });
    }
  }

 private:
  template <typename Body>
  void ForRows(const Body& body) const {
    ParallelFor(rows_, std::max<int64_t>(1, kGrain / 4 / size_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }

  static void Save(Moments moments, int64_t row, float* statistic) {
    if (statistic == nullptr) return;
    if constexpr (kHasMean) statistic[2 * row] = moments.mean;
    statistic[kHasMean ? 2 * row + 1 : row] = moments.inverse_deviation;
  }
  static Moments Saved(const float* statistic, int64_t row) {
    if constexpr (!kHasMean) return {0, statistic[row]};
    return {statistic[2 * row], statistic[2 * row + 1]};
  }

  void Normalise(const float* x, Moments moments, const float* scale, const float* bias,
                 float* y) const {
    if (bias == nullptr) {
      for (int64_t i = 0; i < size_; ++i) {
        y[i] = (x[i] - moments.mean) * moments.inverse_deviation * scale[i];
      }
      return;
    }
    for (int64_t i = 0; i < size_; ++i) {
      y[i] = (x[i] - moments.mean) * moments.inverse_deviation * scale[i] + bias[i];
    }
  }

  void PassRow(const float* x, const float* dy, const float* scale, Moments moments,
               float* dx) const {
    const auto g = [dy, scale](int64_t i) { return dy[i] * scale[i]; };
    GradientSums sums = SumGradients(x, moments, size_, g);
    if constexpr (!kHasMean) sums.gradient = 0;
    PassGradients(x, moments, sums, size_, size_, g, dx);
  }

  int64_t rows_, size_;
  float epsilon_;
};

template <bool kHasMean>
Result<std::unique_ptr<PreparedOp>> PrepareLayerNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const LayerNormShape shape, ReadLayerNormShape(spec));
  return Prepared<RowNormOp<kHasMean>>(shape);
}

constexpr OpRow kLayerNormOps[] = {
    {"LayerNormalization", PrepareLayerNorm<true>},
    {"RMSNormalization", PrepareLayerNorm<false>},
};

}  // namespace

std::span<const OpRow> LayerNormOps() { return kLayerNormOps; }

}  // namespace ckplan::cpu
