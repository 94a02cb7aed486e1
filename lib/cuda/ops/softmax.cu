// Softmax and LogSoftmax: along one axis or, before opset 13, over all axes from `axis` on.
#include "lib/cuda/families.h"
#include "lib/cuda/lines.h"
#include "lib/cuda/scalar_math.h"
#include "lib/ops/softmax.h"

namespace ckplan::cuda {

namespace {

// A line that is all -infinity gives NaN, as the definition implies.
template <bool kIsLog>
struct SoftmaxLine {
  int64_t size;
  FloatsIn x;
  FloatsOut y;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    const float highest = team.Reduce(
        size, -HUGE_VALF, [&](int64_t i) { return x[line[i]]; }, LargerOf());
    const float sum = team.Sum(size, [&](int64_t i) { return Exp(x[line[i]] - highest); });
    if (kIsLog) {
      const float log_sum = logf(sum);
      team.ForEach(size, [&](int64_t i) { y.Set(line[i], x[line[i]] - highest - log_sum); });
    } else {
      const float factor = 1 / sum;
      team.ForEach(size, [&](int64_t i) { y.Set(line[i], Exp(x[line[i]] - highest) * factor); });
    }
  }
};

template <bool kIsLog>
struct GradientLine {
  int64_t size;
  FloatsIn y, dy;
  FloatsOut dx;
  template <typename T>
  CKPLAN_KERNEL void operator()(const T& team, const Line& line) const {
    if (kIsLog) {
      const float sum = team.Sum(size, [&](int64_t i) { return dy[line[i]]; });
      team.ForEach(size, [&](int64_t i) { dx.Set(line[i], dy[line[i]] - Exp(y[line[i]]) * sum); });
    } else {
      const float sum = team.Sum(size, [&](int64_t i) { return dy[line[i]] * y[line[i]]; });
      team.ForEach(size, [&](int64_t i) { dx.Set(line[i], y[line[i]] * (dy[line[i]] - sum)); });
    }
  }
};

template <bool kIsLog>
class SoftmaxOp final : public PreparedOp {
 public:
  SoftmaxOp(const OpSpec& spec, Device& device, const AxisView& view)
      : device_(device), view_(view), x_type_(spec.input(0).type), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    ForLines(device_, view_,
             SoftmaxLine<kIsLog>{view_.size, FloatsIn(call.inputs[0], x_type_),
                                 FloatsOut(call.outputs[0], y_type_)});
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    ForLines(device_, view_,
             GradientLine<kIsLog>{view_.size, FloatsIn(call.outputs[0], y_type_),
                                  FloatsIn(call.output_gradients[0], y_type_),
                                  FloatsOut(gradient, x_type_)});
  }

 private:
  Device& device_;
  AxisView view_;
  ElementType x_type_, y_type_;
};

template <bool kIsLog>
Result<std::unique_ptr<PreparedOp>> PrepareSoftmax(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const SoftmaxShape shape, ReadSoftmaxShape(spec));
  return Prepared<SoftmaxOp<kIsLog>>(spec, device, shape);
}

constexpr OpRow kSoftmaxOps[] = {{"LogSoftmax", PrepareSoftmax<true>},
                                 {"Softmax", PrepareSoftmax<false>}};

}  // namespace

std::span<const OpRow> SoftmaxOps() { return kSoftmaxOps; }

}  // namespace ckplan::cuda
