// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: for each position, the negative logarithm
// of the probability of its label.
#include <algorithm>
#include <cmath>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan::cpu {

namespace {

// Scores are [samples, classes, ...]; a place is a sample together with an index into the axes
// after the classes. The forward workspace holds the loss of each place, and then its weight.
class LossOp final : public PreparedOp {
 public:
  LossOp(const OpSpec& spec, const LossShape& shape)
      : view_(shape.view),
        places_(shape.places()),
        takes_softmax_(shape.takes_softmax),
        has_long_labels_(spec.input(1).type == ElementType::kInt64),
        has_weights_(shape.has_weights),
        ignored_(shape.ignored),
        total_(shape.total) {}
  OpWorkspace workspace() const override { return {places_ * 8, 0}; }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* losses = static_cast<float*>(call.workspace);
    float* weights = losses + places_;
    auto* log_probabilities =
        call.outputs.size() > 1 ? static_cast<float*>(call.outputs[1]) : nullptr;
    ForPlaces([=, this](int64_t place, int64_t first) {
      const float log_sum = takes_softmax_ ? LogSum(x + first) : 0.0F;
      const int64_t label = LabelOf(call.inputs, place);
      weights[place] = WeightOf(call.inputs, label);
      losses[place] =
          label < 0 ? 0.0F : weights[place] * (log_sum - x[first + label * view_.inner]);
      if (log_probabilities == nullptr) return;
      for (int64_t k = 0; k < view_.size; ++k) {
        const int64_t at = first + k * view_.inner;
        log_probabilities[at] = x[at] - log_sum;
      }
    });
    auto* y = static_cast<float*>(call.outputs[0]);
    if (y == nullptr) return;
    if (total_ == LossTotal::kNone) {
      std::copy_n(losses, places_, y);
      return;
    }
    double loss = 0, weight = 0;
    for (int64_t place = 0; place < places_; ++place) {
      loss += static_cast<double>(losses[place]);
      weight += static_cast<double>(weights[place]);
    }
    *y = static_cast<float>(total_ == LossTotal::kMean ? loss / weight : loss);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    const auto* g_log = call.output_gradients.size() > 1
                            ? static_cast<const float*>(call.output_gradients[1])
                            : nullptr;
    auto* dx = static_cast<float*>(gradient);
    const float scale = total_ == LossTotal::kMean ? 1 / TotalWeight(call.inputs) : 1.0F;
    ForPlaces([=, this](int64_t place, int64_t first) {
      const int64_t label = LabelOf(call.inputs, place);
      float slope = g == nullptr || label < 0 ? 0.0F : scale * WeightOf(call.inputs, label);
      if (slope != 0) slope *= g[total_ == LossTotal::kNone ? place : 0];
      if (takes_softmax_) {
        SpreadSoftmax(x + first, slope, g_log == nullptr ? nullptr : g_log + first, dx + first);
      } else {
        for (int64_t k = 0; k < view_.size; ++k) dx[first + k * view_.inner] = 0;
      }
      if (label >= 0) dx[first + label * view_.inner] -= slope;
    });
  }

 private:
  template <typename Body>
  void ForPlaces(const Body& body) const {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 8 * view_.size));
    ParallelFor(places_, grain, [&, this](int64_t begin, int64_t end) {
      for (int64_t place = begin; place < end; ++place) {
        body(place, place / view_.inner * view_.size * view_.inner + place % view_.inner);
      }
    });
  }

  // Returns -1 if the place is ignored.
  int64_t LabelOf(std::span<const void* const> inputs, int64_t place) const {
    const int64_t label = has_long_labels_ ? static_cast<const int64_t*>(inputs[1])[place]
                                           : static_cast<const int32_t*>(inputs[1])[place];
    return label == ignored_ || label < 0 || label >= view_.size ? -1 : label;
  }

  float WeightOf(std::span<const void* const> inputs, int64_t label) const {
    if (label < 0) return 0;
    return has_weights_ ? static_cast<const float*>(inputs[2])[label] : 1.0F;
  }

  float TotalWeight(std::span<const void* const> inputs) const {
    double total = 0;
    for (int64_t place = 0; place < places_; ++place) {
      total += static_cast<double>(WeightOf(inputs, LabelOf(inputs, place)));
    }
    return static_cast<float>(total);
  }

  float LogSum(const float* x) const {
    float highest = x[0];
    for (int64_t k = 1; k < view_.size; ++k) highest = std::max(highest, x[k * view_.inner]);
    double sum = 0;
    for (int64_t k = 0; k < view_.size; ++k) {
      sum += static_cast<double>(Exp(x[k * view_.inner] - highest));
    }
    return highest + static_cast<float>(std::log(sum));
  }

  // Computes dx = slope * softmax + g_log - softmax * Σ g_log.
  void SpreadSoftmax(const float* x, float slope, const float* g_log, float* dx) const {
    const float log_sum = LogSum(x);
    float factor = slope;
    for (int64_t k = 0; g_log != nullptr && k < view_.size; ++k) factor -= g_log[k * view_.inner];
    for (int64_t k = 0; k < view_.size; ++k) {
      const int64_t at = k * view_.inner;
      dx[at] = factor * Exp(x[at] - log_sum) + (g_log == nullptr ? 0.0F : g_log[at]);
    }
  }

  AxisView view_;
  int64_t places_;
  bool takes_softmax_, has_long_labels_, has_weights_;
  int64_t ignored_;
  LossTotal total_;
};

Result<std::unique_ptr<PreparedOp>> PrepareLoss(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const LossShape shape, ReadLossShape(spec));
  return Prepared<LossOp>(spec, shape);
}

constexpr OpRow kLossOps[] = {
    {"SoftmaxCrossEntropyLoss", PrepareLoss},
    {"NegativeLogLikelihoodLoss", PrepareLoss},
};

}  // namespace

std::span<const OpRow> LossOps() { return kLossOps; }

}  // namespace ckplan::cpu
