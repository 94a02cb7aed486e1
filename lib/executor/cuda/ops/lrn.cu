// LRN: local response normalisation across neighbouring channels.
//
//   base = bias + alpha / size * (sum of x² over the window of channels),  y = x base^-beta
//   dx = dy base^-beta - 2 alpha beta / size * x * (sum of dy y / base over the windows with x)
//
// Each element recomputes the bases that it needs. Their inputs are in the caches, and this avoids
// a workspace as large as the tensor.
#include <math.h>

#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cuda {

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
