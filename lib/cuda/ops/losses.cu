// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: of each place, what its label's
// probability lacks.
//
// Scores are [samples, classes, ...]; a place is a sample and what follows the classes. Where
// nothing follows, a team works on the classes of a place, which lie side by side; else each
// thread on a place of its own, since neighbouring places do.
#include <math.h>

#include <algorithm>

#include "lib/cuda/families.h"
#include "lib/cuda/index.h"
#include "lib/cuda/reduce.h"
#include "lib/cuda/scalar_math.h"
#include "lib/ops/axes.h"

namespace ckplan::cuda {

namespace {

enum class Total { kNone, kSum, kMean };

constexpr int64_t kAligned = 256;  // What lies in a workspace beside something else.

// Labels and weights, and what of them counts.
struct Labels {
  IntegersIn labels;
  FloatsIn weights;  // By class; null: all 1.
  int64_t classes;
  int64_t ignored;

  // -1 where the place counts for nothing.
  CKPLAN_DEVICE int64_t Of(int64_t place) const {
    const int64_t label = labels[place];
    return label == ignored || label < 0 || label >= classes ? -1 : label;
  }
  CKPLAN_DEVICE float WeightOf(int64_t label) const {
    if (label < 0) return 0;
    return weights.is_null() ? 1.0F : weights[label];
  }
};

// Where the scores of a place are.
struct Place {
  int64_t first, stride;
  CKPLAN_DEVICE int64_t At(int64_t k) const { return first + k * stride; }
};

// Σ e^x as sum * e^most, which does not overflow.
struct Mass {
  float most, sum;
};
struct MergeMasses {
  CKPLAN_DEVICE static float Rescaled(const Mass& mass, float most) {
    return mass.sum == 0 || mass.most == most ? mass.sum : mass.sum * Exp(mass.most - most);
  }
  CKPLAN_DEVICE Mass operator()(const Mass& a, const Mass& b) const {
    const float most = LargerOf()(a.most, b.most);
    return {most, Rescaled(a, most) + Rescaled(b, most)};
  }
};

// A team of one thread, for places whose classes lie apart.
struct Alone {
  CKPLAN_DEVICE bool IsFirst() const { return true; }
  template <typename Body>
  CKPLAN_DEVICE void ForEach(int64_t count, const Body& body) const {
    for (int64_t i = 0; i < count; ++i) body(i);
  }
  template <typename Value, typename MapTo, typename Combine>
  CKPLAN_DEVICE Value Reduce(int64_t count, Value value, const MapTo& map,
                             const Combine& combine) const {
    for (int64_t i = 0; i < count; ++i) value = combine(value, map(i));
    return value;
  }
};

// log Σ e^x of a place.
template <typename T>
CKPLAN_KERNEL float LogSum(const T& team, const FloatsIn& x, const Place& place, int64_t classes) {
  const Mass mass = team.Reduce(
      classes, Mass{-HUGE_VALF, 0.0F},
      [&](int64_t k) {
        return Mass{x[place.At(k)], 1.0F};
      },
      MergeMasses());
  return mass.most + logf(mass.sum);
}

struct LossForward {
  Labels labels;
  bool takes_softmax;
  FloatsIn x;
  FloatsOut losses;             // By place; may be null.
  FloatsOut log_probabilities;  // May be null, too.

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
  FloatsIn x;           // Read by a softmax alone.
  FloatsIn g, g_log;    // Of the loss and of the logarithms; null where none arrives.
  const float* weight;  // Of all places together, by which a mean divides; null: 1.
  FloatsOut dx;

  // dx = slope softmax + g_log - softmax Σ g_log, and less by the slope at the label.
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

// A loss and its weight, to be summed.
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
  LossOp(const OpSpec& spec, Device& device, Total total)
      : device_(device),
        view_(ViewAlong(spec.input(0).dims, 1)),
        places_(view_.outer * view_.inner),
        takes_softmax_(spec.type == "SoftmaxCrossEntropyLoss"),
        has_weights_(spec.input(2).is_present),
        ignored_(spec.Int("ignore_index", -1)),  // A label below 0 counts nowhere.
        total_(total),
        x_type_(spec.input(0).type),
        label_type_(spec.input(1).type),
        weight_type_(spec.input(2).type),
        y_type_(spec.output(0).type),
        log_type_(spec.output(1).type),
        sum_(ReduceShape::Of(1, places_, false)) {}

  // Forward: the loss of each place, where they are summed, and the parts of the sum. Backward: the
  // weight that a mean divides by, and the parts of that sum.
  OpWorkspace workspace() const override {
    const int64_t parts = sum_.workspace<Weighed>();
    return {losses_bytes() + (total_ == Total::kNone ? 0 : parts),
            total_ == Total::kMean ? kAligned + parts : 0};
  }

  void Forward(const ForwardCall& call) override {
    void* y = call.outputs[0];
    const bool is_summed = total_ != Total::kNone;
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
    const bool is_mean = total_ == Total::kMean;
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
    body.has_gradient_by_place = total_ == Total::kNone;
    body.x = FloatsIn(call.inputs[0], x_type_);
    body.g = FloatsIn(call.output_gradients[0], y_type_);
    if (call.output_gradients.size() > 1) {
      body.g_log = FloatsIn(call.output_gradients[1], log_type_);
    }
    body.dx = FloatsOut(gradient, x_type_);
    if (total_ == Total::kMean) {
      auto* weight = static_cast<float*>(call.workspace);
      SumWeights(body.labels, weight);
      body.weight = weight;
    }
    ForPlaces(body);
  }

  // Public, for nvcc: the weight of all places together.
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
    return total_ == Total::kNone ? 0 : CeilDiv(places_ * 4, kAligned) * kAligned;
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
  Total total_;
  ElementType x_type_, label_type_, weight_type_, y_type_, log_type_;
  ReduceShape sum_;
};

Result<std::unique_ptr<PreparedOp>> PrepareLoss(const OpSpec& spec, Device& device) {
  const std::string reduction = spec.String("reduction", "mean");
  if (spec.input(0).dims.size() < 2 || spec.input(0).dims[1] < 1) {
    return Unsupported(spec, "its scores have no classes");
  }
  if (spec.input(2).is_present && spec.input(0).has_gradient &&
      !spec.input(2).is_read_by_backward) {
    return Unsupported(spec, "its weights are computed during the step");
  }
  const Total total = reduction == "none"  ? Total::kNone
                      : reduction == "sum" ? Total::kSum
                                           : Total::kMean;
  return Prepared<LossOp>(spec, device, total);
}

constexpr OpRow kRows[] = {
    {"SoftmaxCrossEntropyLoss", PrepareLoss},
    {"NegativeLogLikelihoodLoss", PrepareLoss},
};

}  // namespace

std::span<const OpRow> LossOps() { return kRows; }

}  // namespace ckplan::cuda
