// Softmax and LogSoftmax: along one axis or, before opset 13, over all axes from `axis` on.
#include <math.h>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/lines.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/softmax.h"

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

// The gradient of contiguous rows in a warp's registers.
template <bool kIsLog, int kGroups>
struct HeldGradient {
  int64_t size;
  FloatsIn y, dy;
  FloatsOut dx;
  CKPLAN_KERNEL void operator()(const Team& team, int64_t row) const {
    const RegisterGroups<kGroups> groups(team, size);
    const int64_t first = row * (size / kVector);
    const RegisterRow<kGroups> out = groups.Hold([&](int g) { return y.Load(first + g); });
    RegisterRow<kGroups> held = groups.Hold([&](int g) { return dy.Load(first + g); });
    const float sum = groups.Sum([&](int k, int lane) {
      const float g = held.at[k].at[lane];
      return kIsLog ? g : g * out.at[k].at[lane];
    });
    groups.ForEach([&](int k, int g) {
      CKPLAN_UNROLL
      for (int lane = 0; lane < kVector; ++lane) {
        float& value = held.at[k].at[lane];
        const float own = out.at[k].at[lane];
        value = kIsLog ? value - Exp(own) * sum : own * (value - sum);
      }
      dx.Store(first + g, held.at[k]);
    });
  }
};

template <bool kIsLog>
class SoftmaxOp final : public PreparedOp {
 public:
  SoftmaxOp(const OpSpec& spec, Device& device, const AxisView& view)
      : device_(device), view_(view), x_type_(spec.input(0).type), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const int64_t size = view_.size;
    if (!holds_rows()) {
      ForLines(device_, view_, SoftmaxLine<kIsLog>{size, x, y});
    } else if (FitsFewGroups(size)) {
      ForRowsByWarps(device_, view_.outer,
                     RegisterSoftmax<kIsLog, kFewGroups, RowsOf>{size, {x, size}, y});
    } else {
      ForRowsByWarps(device_, view_.outer,
                     RegisterSoftmax<kIsLog, kManyGroups, RowsOf>{size, {x, size}, y});
    }
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn y(call.outputs[0], y_type_), dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const int64_t size = view_.size;
    if (!holds_rows()) {
      ForLines(device_, view_, GradientLine<kIsLog>{size, y, dy, dx});
    } else if (FitsFewGroups(size)) {
      ForRowsByWarps(device_, view_.outer, HeldGradient<kIsLog, kFewGroups>{size, y, dy, dx});
    } else {
      ForRowsByWarps(device_, view_.outer, HeldGradient<kIsLog, kManyGroups>{size, y, dy, dx});
    }
  }

 private:
  bool holds_rows() const { return view_.inner == 1 && CanHoldRow(view_.size); }

  Device& device_;
  AxisView view_;
  ElementType x_type_, y_type_;
};

template <bool kIsLog>
Result<std::unique_ptr<PreparedOp>> PrepareSoftmax(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const SoftmaxShape shape, ReadSoftmaxShape(spec));
  if (IsGuarded(spec)) return Unsupported(spec, "it must replace NaNs with zeros");
  return Prepared<SoftmaxOp<kIsLog>>(spec, device, shape);
}

constexpr OpRow kSoftmaxOps[] = {{"LogSoftmax", PrepareSoftmax<true>},
                                 {"Softmax", PrepareSoftmax<false>}};

}  // namespace

std::span<const OpRow> SoftmaxOps() { return kSoftmaxOps; }

}  // namespace ckplan::cuda
