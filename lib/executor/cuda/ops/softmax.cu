// Softmax and LogSoftmax: along one axis or, before opset 13, over all axes from `axis` on.
#include <math.h>

#include <algorithm>

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

// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: for each position, the negative logarithm
// of the probability of its label.
//
// Scores are [samples, classes, ...]; a place is a sample together with an index into the axes
// after the classes. If there are no such axes, the scores of a place are contiguous, and a team
// works on each place. Otherwise each thread works on one place, since the scores of neighbouring
// places are adjacent.

namespace {

constexpr int64_t kAligned = 256;  // Alignment of buffers that share a workspace.

// Labels and their weights, and which places are ignored.
struct Labels {
  IntegersIn labels;
  FloatsIn weights;  // One per class; null means that all are 1.
  int64_t classes;
  int64_t ignored;

  // Returns the label of the place, or -1 if the place is ignored.
  CKPLAN_DEVICE int64_t Of(int64_t place) const {
    const int64_t label = labels[place];
    return label == ignored || label < 0 || label >= classes ? -1 : label;
  }
  CKPLAN_DEVICE float WeightOf(int64_t label) const {
    if (label < 0) return 0;
    return weights.is_null() ? 1.0F : weights[label];
  }
};

// The offsets of the scores of a place.
struct Place {
  int64_t first, stride;
  CKPLAN_DEVICE int64_t At(int64_t k) const { return first + k * stride; }
};

// Σ e^x represented as sum * e^highest, which does not overflow.
struct Mass {
  float highest, sum;
};
struct MergeMasses {
  CKPLAN_DEVICE static float Rescaled(const Mass& mass, float highest) {
    return mass.sum == 0 || mass.highest == highest ? mass.sum
                                                    : mass.sum * Exp(mass.highest - highest);
  }
  CKPLAN_DEVICE Mass operator()(const Mass& a, const Mass& b) const {
    const float highest = LargerOf()(a.highest, b.highest);
    return {highest, Rescaled(a, highest) + Rescaled(b, highest)};
  }
};

// Returns log Σ e^x of a place.
template <typename T>
CKPLAN_KERNEL float LogSum(const T& team, const FloatsIn& x, const Place& place, int64_t classes) {
  const Mass mass = team.Reduce(
      classes, Mass{-HUGE_VALF, 0.0F},
      [&](int64_t k) {
        return Mass{x[place.At(k)], 1.0F};
      },
      MergeMasses());
  return mass.highest + logf(mass.sum);
}

struct LossForward {
  Labels labels;
  bool takes_softmax;
  FloatsIn x;
  FloatsOut losses;             // One per place; may be null.
  FloatsOut log_probabilities;  // May be null.

  template <typename T>
  CKPLAN_KERNEL void Run(const T& team, int64_t index, const Place& place) const {
    const float log_sum = takes_softmax ? LogSum(team, x, place, labels.classes) : 0.0F;
    const int64_t label = labels.Of(index);
    if (team.IsFirst() && !losses.is_null()) {
      const float loss = label < 0 ? 0.0F : labels.WeightOf(label) * (log_sum - x[place.At(label)]);
      losses.Set(index, loss);
    }
    if (log_probabilities.is_null()) return;
    team.ForEach(labels.classes,
                 [&](int64_t k) { log_probabilities.Set(place.At(k), x[place.At(k)] - log_sum); });
  }
};

struct LossBackward {
  Labels labels;
  bool takes_softmax;
  bool has_gradient_by_place;
  FloatsIn x;           // Read only if the operator includes the softmax.
  FloatsIn g, g_log;    // Gradients of loss and log-probabilities; may be null.
  const float* weight;  // Total weight by which a mean divides; null means 1.
  FloatsOut dx;

  // Computes dx = slope * softmax + g_log - softmax * Σ g_log; at the label, slope is subtracted.
  template <typename T>
  CKPLAN_KERNEL void Run(const T& team, int64_t index, const Place& place) const {
    const int64_t label = labels.Of(index);
    float slope = g.is_null() || label < 0 ? 0.0F : labels.WeightOf(label);
    if (slope != 0 && weight != nullptr) slope *= 1 / *weight;
    if (slope != 0) slope *= g[has_gradient_by_place ? index : 0];
    if (!takes_softmax) {
      team.ForEach(labels.classes,
                   [&](int64_t k) { dx.Set(place.At(k), k == label ? -slope : 0.0F); });
      return;
    }
    const float log_sum = LogSum(team, x, place, labels.classes);
    float factor = slope;
    if (!g_log.is_null()) {
      factor -= team.Reduce(
          labels.classes, 0.0F, [&](int64_t k) { return g_log[place.At(k)]; }, SumOf());
    }
    team.ForEach(labels.classes, [&](int64_t k) {
      const int64_t at = place.At(k);
      const float spread = factor * Exp(x[at] - log_sum) + (g_log.is_null() ? 0.0F : g_log[at]);
      dx.Set(at, k == label ? spread - slope : spread);
    });
  }
};

template <typename Body>
struct ByTeams {
  Body body;
  CKPLAN_KERNEL void operator()(Team& team, int64_t index) const {
    body.Run(team, index, Place{index * body.labels.classes, 1});
  }
};
template <typename Body>
struct ByThreads {
  Body body;
  Divider inner;
  CKPLAN_KERNEL void operator()(int64_t index) const {
    int64_t inside = index;
    const int64_t outer = inner.Split(inside);
    const int64_t first = outer * body.labels.classes * inner.divisor() + inside;
    body.Run(Alone(), index, Place{first, inner.divisor()});
  }
};

// A loss and its weight, which are summed.
struct Weighed {
  float loss, weight;
};
struct AddWeighed {
  CKPLAN_DEVICE Weighed operator()(const Weighed& a, const Weighed& b) const {
    return {a.loss + b.loss, a.weight + b.weight};
  }
};

class LossOp final : public PreparedOp {
 public:
  LossOp(const OpSpec& spec, Device& device, const LossShape& shape)
      : device_(device),
        view_(shape.view),
        places_(shape.places()),
        takes_softmax_(shape.takes_softmax),
        has_weights_(shape.has_weights),
        ignored_(shape.ignored),
        total_(shape.total),
        x_type_(spec.input(0).type),
        label_type_(spec.input(1).type),
        weight_type_(spec.input(2).type),
        y_type_(spec.output(0).type),
        log_type_(spec.output(1).type),
        sum_(ReduceShape::Of(1, places_, false)) {}

  // Forward's part holds the loss of each place if the losses are reduced, and the partial results
  // of their sum. Backward's part holds the total weight by which a mean divides, and the partial
  // results of that sum.
  OpWorkspace workspace() const override {
    const int64_t parts = sum_.workspace<Weighed>();
    return {losses_bytes() + (total_ == LossTotal::kNone ? 0 : parts),
            total_ == LossTotal::kMean ? kAligned + parts : 0};
  }

  void Forward(const ForwardCall& call) override {
    void* y = call.outputs[0];
    const bool is_summed = total_ != LossTotal::kNone;
    const FloatsIn losses(call.workspace, ElementType::kFloat32);
    LossForward body{};
    body.labels = LabelsOf(call.inputs);
    body.takes_softmax = takes_softmax_;
    body.x = FloatsIn(call.inputs[0], x_type_);
    body.losses =
        is_summed ? FloatsOut(call.workspace, ElementType::kFloat32) : FloatsOut(y, y_type_);
    if (call.outputs.size() > 1) body.log_probabilities = FloatsOut(call.outputs[1], log_type_);
    ForPlaces(body);
    if (!is_summed || y == nullptr) return;
    const Labels labels = body.labels;
    const FloatsOut out(y, y_type_);
    const bool is_mean = total_ == LossTotal::kMean;
    Reduce(
        device_, sum_, Weighed{0, 0},
        [=] CKPLAN_KERNEL(int64_t, int64_t place) {
          return Weighed{losses[place], labels.WeightOf(labels.Of(place))};
        },
        AddWeighed(),
        [=] CKPLAN_KERNEL(int64_t, const Weighed& all) {
          out.Set(0, is_mean ? all.loss / all.weight : all.loss);
        },
        static_cast<char*>(call.workspace) + losses_bytes());
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    LossBackward body{};
    body.labels = LabelsOf(call.inputs);
    body.takes_softmax = takes_softmax_;
    body.has_gradient_by_place = total_ == LossTotal::kNone;
    body.x = FloatsIn(call.inputs[0], x_type_);
    body.g = FloatsIn(call.output_gradients[0], y_type_);
    if (call.output_gradients.size() > 1) {
      body.g_log = FloatsIn(call.output_gradients[1], log_type_);
    }
    body.dx = FloatsOut(gradient, x_type_);
    if (total_ == LossTotal::kMean) {
      auto* weight = static_cast<float*>(call.workspace);
      SumWeights(body.labels, weight);
      body.weight = weight;
    }
    ForPlaces(body);
  }

  // Computes the total weight of all places. Public, because nvcc does not allow kernels in private
  // methods.
  void SumWeights(const Labels& labels, float* weight) {
    Reduce(
        device_, sum_, Weighed{0, 0},
        [=] CKPLAN_KERNEL(int64_t, int64_t place) {
          return Weighed{0, labels.WeightOf(labels.Of(place))};
        },
        AddWeighed(), [=] CKPLAN_KERNEL(int64_t, const Weighed& all) { *weight = all.weight; },
        reinterpret_cast<char*>(weight) + kAligned);
  }

 private:
  int64_t losses_bytes() const {
    return total_ == LossTotal::kNone ? 0 : CeilDiv(places_ * 4, kAligned) * kAligned;
  }

  Labels LabelsOf(std::span<const void* const> inputs) const {
    return Labels{IntegersIn(inputs[1], label_type_),
                  has_weights_ ? FloatsIn(inputs[2], weight_type_) : FloatsIn(), view_.size,
                  ignored_};
  }

  template <typename Body>
  void ForPlaces(const Body& body) {
    if (places_ == 0) return;
    if (view_.inner == 1) {
      ForRows(device_, places_, view_.size, ByTeams<Body>{body});
    } else {
      ForEach(device_, places_, ByThreads<Body>{body, Divider(view_.inner)});
    }
  }

  Device& device_;
  AxisView view_;
  int64_t places_;
  bool takes_softmax_, has_weights_;
  int64_t ignored_;
  LossTotal total_;
  ElementType x_type_, label_type_, weight_type_, y_type_, log_type_;
  ReduceShape sum_;
};

Result<std::unique_ptr<PreparedOp>> PrepareLoss(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const LossShape shape, ReadLossShape(spec));
  return Prepared<LossOp>(spec, device, shape);
}

constexpr OpRow kLossOps[] = {
    {"SoftmaxCrossEntropyLoss", PrepareLoss},
    {"NegativeLogLikelihoodLoss", PrepareLoss},
};

}  // namespace

std::span<const OpRow> LossOps() { return kLossOps; }

}  // namespace ckplan::cuda
