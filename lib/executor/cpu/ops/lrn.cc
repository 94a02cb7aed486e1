// LRN: local response normalisation across neighbouring channels.
//
//   base = bias + alpha / size * (sum of x² over the window of channels),  y = x base^-beta
//   dx = dy base^-beta - 2 alpha beta / size * x * (sum of dy y / base over the windows with x)
//
// A strip of positions is computed for all channels before the next strip.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cpu {

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
        PassChannel(x, dy, base, share, c, count, Floats(gradient) + offset);
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

  void PassChannel(const float* x, const float* dy, const float* base, const float* share,
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
