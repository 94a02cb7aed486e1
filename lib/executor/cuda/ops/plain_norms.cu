// LpNormalization and GlobalLpPool: norms of lines along an axis.
#include <math.h>

#include <algorithm>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/lines.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cuda {

namespace {

// Computes the p-th root of the sum of p-th powers of absolute values.
struct Norm {
  int64_t p;

  template <typename T>
  CKPLAN_KERNEL float Of(const T& team, const Line& line, int64_t size, const FloatsIn& x) const {
    const float sum = team.Sum(size, [&](int64_t i) { return Power(x[line[i]]); });
    return p == 1 ? sum : p == 2 ? sqrtf(sum) : powf(sum, 1 / static_cast<float>(p));
  }
  CKPLAN_DEVICE float Power(float x) const {
    return p == 1 ? fabsf(x) : p == 2 ? x * x : powf(fabsf(x), static_cast<float>(p));
  }
  // Returns the derivative of the norm with respect to x.
  CKPLAN_DEVICE float Slope(float x, float norm) const {
    const float sign = x > 0 ? 1.0F : x < 0 ? -1.0F : 0.0F;
    if (p == 1) return sign;
    const float ratio = fabsf(x) / norm;
    return sign * (p == 2 ? ratio : powf(ratio, static_cast<float>(p - 1)));
  }
};

// Computes y = x / norm; a line of zeros stays zero.
struct NormalizeLine {
  int64_t size;
  Norm norm;
  FloatsIn x;
  FloatsOut y;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const float length = norm.Of(team, line, size, x);
    team.ForEach(size,
                 [&](int64_t i) { y.Set(line[i], length == 0 ? 0.0F : x[line[i]] / length); });
  }
};

// Computes dx = (g - slope Σ g y) / norm.
struct NormalizeGradientLine {
  int64_t size;
  Norm norm;
  FloatsIn x, y, g;
  FloatsOut dx;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const float length = norm.Of(team, line, size, x);
    const float product = team.Sum(size, [&](int64_t i) { return g[line[i]] * y[line[i]]; });
    team.ForEach(size, [&](int64_t i) {
      const int64_t at = line[i];
      const float own = length == 0 ? 0.0F : norm.Slope(x[at], length);
      dx.Set(at, length == 0 ? 0.0F : (g[at] - own * product) / length);
    });
  }
};

struct PoolLine {
  int64_t size;
  Norm norm;
  FloatsIn x;
  FloatsOut y;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const float length = norm.Of(team, line, size, x);
    if (team.IsFirst()) y.Set(line.index, length);
  }
};

struct PoolGradientLine {
  int64_t size;
  Norm norm;
  FloatsIn x, y, g;
  FloatsOut dx;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const float length = y[line.index];
    const float own = g[line.index];
    team.ForEach(size, [&](int64_t i) {
      dx.Set(line[i], length == 0 ? 0.0F : own * norm.Slope(x[line[i]], length));
    });
  }
};

// The types Forwards and Gradient are the bodies of the two passes.
template <typename Forwards, typename Gradient>
class NormOp final : public PreparedOp {
 public:
  NormOp(const OpSpec& spec, Device& device, const LpNormShape& shape)
      : device_(device),
        view_(shape.view),
        norm_{shape.p},
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    ForLines(device_, view_,
             Forwards{view_.size, norm_, FloatsIn(call.inputs[0], x_type_),
                      FloatsOut(call.outputs[0], y_type_)});
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    ForLines(device_, view_,
             Gradient{view_.size, norm_, FloatsIn(call.inputs[0], x_type_),
                      FloatsIn(call.outputs[0], y_type_),
                      FloatsIn(call.output_gradients[0], y_type_), FloatsOut(gradient, x_type_)});
  }

 private:
  Device& device_;
  AxisView view_;
  Norm norm_;
  ElementType x_type_, y_type_;
};

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareLpNorm(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const LpNormShape shape, ReadLpNormShape(spec));
  return Prepared<Op>(spec, device, shape);
}

constexpr OpRow kLpNormOps[] = {
    {"GlobalLpPool", PrepareLpNorm<NormOp<PoolLine, PoolGradientLine>>},
    {"LpNormalization", PrepareLpNorm<NormOp<NormalizeLine, NormalizeGradientLine>>},
};

}  // namespace

std::span<const OpRow> LpNormOps() { return kLpNormOps; }

// LRN: local response normalisation across neighbouring channels.
//
//   base = bias + alpha / size * (sum of x² over the window of channels),  y = x base^-beta
//   dx = dy base^-beta - 2 alpha beta / size * x * (sum of dy y / base over the windows with x)
//
// Each element recomputes the bases that it needs. Their inputs are in the caches, and this avoids
// a workspace as large as the tensor.

namespace {

struct Bases {
  int64_t channels, positions, size;
  float factor, bias, beta;
  Divider by_position, by_channel;

  // Returns the base at `channel`. `first` is the offset of channel 0 at this position.
  CKPLAN_DEVICE float Of(const FloatsIn& x, int64_t first, int64_t channel) const {
    const int64_t begin = channel - (size - 1) / 2;
    float sum = 0;
    for (int64_t k = Max(0, begin); k < Min(channels, begin + size); ++k) {
      const float value = x[first + k * positions];
      sum += value * value;
    }
    return bias + factor * sum;
  }

  // Returns base^-beta.
  CKPLAN_DEVICE float Power(float base) const {
    if (beta != 0.75F) return powf(base, -beta);
    const float root = sqrtf(base);  // The usual exponent, as in AlexNet; roots are faster.
    return 1 / (root * sqrtf(root));
  }

  CKPLAN_DEVICE int64_t ChannelOf(int64_t i) const {
    int64_t channel = by_position.Quotient(i);
    by_channel.Split(channel);
    return channel;
  }
};

class LrnOp final : public PreparedOp {
 public:
  LrnOp(const OpSpec& spec, Device& device, const LrnShape& shape)
      : device_(device),
        count_(spec.input(0).elements()),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {
    bases_.channels = shape.view.channels;
    bases_.positions = shape.view.positions;
    bases_.size = shape.size;
    bases_.factor = shape.factor;
    bases_.bias = shape.bias;
    bases_.beta = shape.beta;
    bases_.by_position = Divider(bases_.positions);
    bases_.by_channel = Divider(bases_.channels);
  }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const Bases bases = bases_;
    ForEach(device_, count_, [=] CKPLAN_KERNEL(int64_t i) {
      const int64_t channel = bases.ChannelOf(i);
      const float base = bases.Of(x, i - channel * bases.positions, channel);
      y.Set(i, x[i] * bases.Power(base));
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn x(call.inputs[0], x_type_), y(call.outputs[0], y_type_);
    const FloatsIn dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const Bases bases = bases_;
    ForEach(device_, count_, [=] CKPLAN_KERNEL(int64_t i) {
      const int64_t channel = bases.ChannelOf(i);
      const int64_t first = i - channel * bases.positions;
      // The windows that contain this channel.
      const int64_t begin = channel - (bases.size - 1) + (bases.size - 1) / 2;
      float sum = 0;
      float own = 0;
      for (int64_t k = Max(0, begin); k < Min(bases.channels, begin + bases.size); ++k) {
        const int64_t at = first + k * bases.positions;
        const float base = bases.Of(x, first, k);
        sum += dy[at] * y[at] / base;
        if (k == channel) own = bases.Power(base);
      }
      const float slope = 2 * bases.factor * bases.beta;
      dx.Set(i, dy[i] * own - slope * x[i] * sum);
    });
  }

 private:
  Device& device_;
  int64_t count_;
  Bases bases_{};
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareLrn(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const LrnShape shape, ReadLrnShape(spec));
  return Prepared<LrnOp>(spec, device, shape);
}

constexpr OpRow kLrnOps[] = {{"LRN", PrepareLrn}};

}  // namespace

std::span<const OpRow> LrnOps() { return kLrnOps; }

}  // namespace ckplan::cuda
