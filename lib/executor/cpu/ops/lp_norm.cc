// LpNormalization and GlobalLpPool: norms of lines along an axis.
#include <algorithm>
#include <cmath>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cpu {

namespace {

// Returns the p-th root of the sum of p-th powers of absolute values.
double NormOf(const float* x, int64_t size, int64_t step, int64_t p) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double value = std::abs(static_cast<double>(x[i * step]));
    sum += p == 1 ? value : p == 2 ? value * value : std::pow(value, static_cast<double>(p));
  }
  return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / static_cast<double>(p));
}

class NormOp : public PreparedOp {
 public:
  explicit NormOp(const LpNormShape& shape) : view_(shape.view), p_(shape.p) {}

 protected:
  // Calls body(line, offset of the line's first element).
  template <typename Body>
  void ForLines(const Body& body) const {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, view_.size));
    ParallelFor(view_.outer * view_.inner, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        body(i, i / view_.inner * view_.size * view_.inner + i % view_.inner);
      }
    });
  }

  // Returns the derivative of the norm with respect to x.
  float Slope(float x, double norm) const {
    const float sign = x > 0 ? 1.0F : x < 0 ? -1.0F : 0.0F;
    if (p_ == 1) return sign;
    const double ratio = std::abs(static_cast<double>(x)) / norm;
    return sign *
           static_cast<float>(p_ == 2 ? ratio : std::pow(ratio, static_cast<double>(p_ - 1)));
  }

  AxisView view_;
  int64_t p_;
};

// Computes y = x / norm; a line of zeros stays zero. Backward computes dx = (g - slope Σ g y) /
// norm.
class LpNormalizationOp final : public NormOp {
 public:
  using NormOp::NormOp;

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    ForLines([=, this](int64_t, int64_t first) {
      const double norm = NormOf(x + first, view_.size, view_.inner, p_);
      const double scale = norm == 0 ? 0 : 1 / norm;
      for (int64_t i = 0; i < view_.size; ++i) {
        const int64_t at = first + i * view_.inner;
        y[at] = static_cast<float>(static_cast<double>(x[at]) * scale);
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* y = static_cast<const float*>(call.outputs[0]);
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    ForLines([=, this](int64_t, int64_t first) {
      const double norm = NormOf(x + first, view_.size, view_.inner, p_);
      double product = 0;
      for (int64_t i = 0; i < view_.size; ++i) {
        const int64_t at = first + i * view_.inner;
        product += static_cast<double>(g[at]) * static_cast<double>(y[at]);
      }
      for (int64_t i = 0; i < view_.size; ++i) {
        const int64_t at = first + i * view_.inner;
        const double slope = norm == 0 ? 0 : static_cast<double>(Slope(x[at], norm));
        const double sum = static_cast<double>(g[at]) - slope * product;
        dx[at] = norm == 0 ? 0.0F : static_cast<float>(sum / norm);
      }
    });
  }
};

class GlobalLpPoolOp final : public NormOp {
 public:
  using NormOp::NormOp;

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    ForLines([=, this](int64_t line, int64_t first) {
      y[line] = static_cast<float>(NormOf(x + first, view_.size, view_.inner, p_));
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* y = static_cast<const float*>(call.outputs[0]);
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    ForLines([=, this](int64_t line, int64_t first) {
      for (int64_t i = 0; i < view_.size; ++i) {
        const float slope = y[line] == 0 ? 0.0F : Slope(x[first + i], static_cast<double>(y[line]));
        dx[first + i] = g[line] * slope;
      }
    });
  }
};

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareLpNorm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const LpNormShape shape, ReadLpNormShape(spec));
  return Prepared<Op>(shape);
}

constexpr OpRow kLpNormOps[] = {
    {"GlobalLpPool", PrepareLpNorm<GlobalLpPoolOp>},
    {"LpNormalization", PrepareLpNorm<LpNormalizationOp>},
};

}  // namespace

std::span<const OpRow> LpNormOps() { return kLpNormOps; }

}  // namespace ckplan::cpu
