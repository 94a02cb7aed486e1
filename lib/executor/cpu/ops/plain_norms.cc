// LpNormalization and GlobalLpPool: norms of lines along an axis.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
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

// LRN: local response normalisation across neighbouring channels.
//
//   base = bias + alpha / size * (sum of x² over the window of channels),  y = x base^-beta
//   dx = dy base^-beta - 2 alpha beta / size * x * (sum of dy y / base over the windows with x)
//
// A strip of positions is computed for all channels before the next strip.

namespace {

constexpr int64_t kStrip = 64;  // Number of positions.

class LrnOp final : public PreparedOp {
 public:
  explicit LrnOp(const LrnShape& shape)
      : samples_(shape.view.samples),
        channels_(shape.view.channels),
        positions_(shape.view.positions),
        size_(shape.size),
        factor_(shape.factor),
        beta_(shape.beta),
        bias_(shape.bias) {
    const int64_t strip = channels_ * kStrip * static_cast<int64_t>(sizeof(float));
    for (int thread = 0; thread < omp_get_max_threads(); ++thread) {
      bases_.push_back(plan_.Add(strip));
      shares_.push_back(plan_.Add(strip));
    }
  }

  OpWorkspace workspace() const override { return {plan_.total(), plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    ForStrips([&](int64_t offset, int64_t count, size_t thread) {
      const float* x = Floats(call.inputs[0]) + offset;
      float* y = Floats(call.outputs[0]) + offset;
      float* base = FloatsAt(call.workspace, bases_[thread]);
      FindBases(x, count, base);
      for (int64_t c = 0; c < channels_; ++c) {
        const float* own = base + c * kStrip;
        Scale(x + c * positions_, own, count, y + c * positions_);
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    ForStrips([&](int64_t offset, int64_t count, size_t thread) {
      const float* x = Floats(call.inputs[0]) + offset;
      const float* y = Floats(call.outputs[0]) + offset;
      const float* dy = Floats(call.output_gradients[0]) + offset;
      float* base = FloatsAt(call.workspace, bases_[thread]);
      float* share = FloatsAt(call.workspace, shares_[thread]);
      FindBases(x, count, base);
      for (int64_t c = 0; c < channels_; ++c) {
        const int64_t at = c * positions_;
        for (int64_t i = 0; i < count; ++i) {
          share[c * kStrip + i] = dy[at + i] * y[at + i] / base[c * kStrip + i];
        }
      }
      for (int64_t c = 0; c < channels_; ++c) {
        BackwardChannel(x, dy, base, share, c, count, Floats(gradient) + offset);
      }
    });
  }

 private:
  // Calls body(offset of channel 0, positions, thread) for each strip.
  template <typename Body>
  void ForStrips(const Body& body) const {
    const int64_t strips = (positions_ + kStrip - 1) / kStrip;
    ParallelFor(samples_ * strips, 1, [&](int64_t begin, int64_t end) {
      const auto thread = static_cast<size_t>(omp_get_thread_num());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % strips * kStrip;
        body(i / strips * channels_ * positions_ + first, std::min(kStrip, positions_ - first),
             thread);
      }
    });
  }

  void FindBases(const float* x, int64_t count, float* base) const {
    for (int64_t c = 0; c < channels_; ++c) {
      float sums[kStrip] = {};
      const int64_t first = c - (size_ - 1) / 2;
      for (int64_t k = std::max<int64_t>(0, first); k < std::min(channels_, first + size_); ++k) {
        const float* at = x + k * positions_;
        for (int64_t i = 0; i < count; ++i) sums[i] += at[i] * at[i];
      }
      for (int64_t i = 0; i < count; ++i) base[c * kStrip + i] = bias_ + factor_ * sums[i];
    }
  }

  // Computes to = from base^-beta.
  void Scale(const float* from, const float* base, int64_t count, float* to) const {
    if (beta_ == 0.75F) {  // The usual value, as in AlexNet; roots are faster than pow.
      for (int64_t i = 0; i < count; ++i) {
        const float root = std::sqrt(base[i]);
        to[i] = from[i] / (root * std::sqrt(root));
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] * std::pow(base[i], -beta_);
  }

  void BackwardChannel(const float* x, const float* dy, const float* base, const float* share,
                       int64_t c, int64_t count, float* dx) const {
    float sums[kStrip] = {};
    const int64_t first = c - (size_ - 1) + (size_ - 1) / 2;  // The first window that contains c.
    for (int64_t k = std::max<int64_t>(0, first); k < std::min(channels_, first + size_); ++k) {
      for (int64_t i = 0; i < count; ++i) sums[i] += share[k * kStrip + i];
    }
    const int64_t at = c * positions_;
    const float slope = 2 * factor_ * beta_;
    float direct[kStrip];
    Scale(dy + at, base + c * kStrip, count, direct);
    for (int64_t i = 0; i < count; ++i) dx[at + i] = direct[i] - slope * x[at + i] * sums[i];
  }

  int64_t samples_, channels_, positions_;
  int64_t size_;
  float factor_, beta_, bias_;
  WorkspacePlan plan_;
  std::vector<int64_t> bases_, shares_;  // Offsets in the workspace, one per thread.
};

Result<std::unique_ptr<PreparedOp>> PrepareLrn(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const LrnShape shape, ReadLrnShape(spec));
  return Prepared<LrnOp>(shape);
}

constexpr OpRow kLrnOps[] = {{"LRN", PrepareLrn}};

}  // namespace

std::span<const OpRow> LrnOps() { return kLrnOps; }

}  // namespace ckplan::cpu
