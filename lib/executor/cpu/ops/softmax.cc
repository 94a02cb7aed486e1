// Softmax and LogSoftmax: along one axis or, before opset 13, over all axes from `axis` on.
#include "lib/executor/cpu/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan::cpu {

CKPLAN_VECTOR_CLONES
float MaxElement(const float* x, int64_t size) {
  constexpr int64_t kLanes = 16;
  float lanes[kLanes];
  for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  const auto higher = [](float a, float b) { return b > a || b != b ? b : a; };
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = higher(lanes[lane], x[i + lane]);
  }
  for (; i < size; ++i) lanes[0] = higher(lanes[0], x[i]);
  float highest = lanes[0];
  for (const float lane : lanes) highest = higher(highest, lane);
  return highest;
}

CKPLAN_VECTOR_CLONES
void SoftmaxRow(const float* x, float* y, int64_t size) {
  const float highest = MaxElement(x, size);
  for (int64_t i = 0; i < size; ++i) y[i] = Exp(x[i] - highest);
  const auto factor = static_cast<float>(1 / Sum(y, size));
  for (int64_t i = 0; i < size; ++i) y[i] *= factor;
}

CKPLAN_VECTOR_CLONES
void LogSoftmaxRow(const float* x, float* y, int64_t size) {
  const float highest = MaxElement(x, size);
  const double sum = SumTerms(size, [x, highest](int64_t i) { return Exp(x[i] - highest); });
  const auto log_sum = static_cast<float>(std::log(sum));
  for (int64_t i = 0; i < size; ++i) y[i] = (x[i] - highest) - log_sum;
}

CKPLAN_VECTOR_CLONES
void SoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size) {
  const auto sum = static_cast<float>(SumTerms(size, [y, dy](int64_t i) { return y[i] * dy[i]; }));
  for (int64_t i = 0; i < size; ++i) dx[i] = y[i] * (dy[i] - sum);
}

CKPLAN_VECTOR_CLONES
void LogSoftmaxRowGradient(const float* y, const float* dy, float* dx, int64_t size) {
  const auto sum = static_cast<float>(Sum(dy, size));
  for (int64_t i = 0; i < size; ++i) dx[i] = dy[i] - Exp(y[i]) * sum;
}

namespace {

// Columns processed together if the axis is not the last one: at least a cache line.
constexpr int64_t kColumns = 64;

template <bool kIsLog>
class SoftmaxOp final : public PreparedOp {
 public:
  SoftmaxOp(const OpSpec& spec, const SoftmaxShape& shape)
      : shape_(shape), is_guarded_(IsGuarded(spec)), count_(spec.input(0).elements()) {}

  void Forward(const ForwardCall& call) override {
    const float* x = Floats(call.inputs[0]);
    float* y = Floats(call.outputs[0]);
    if (y == nullptr) return;
    if (shape_.inner == 1) {
      ForRows([&](int64_t at) {
        if constexpr (kIsLog) LogSoftmaxRow(x + at, y + at, shape_.size);
        if constexpr (!kIsLog) SoftmaxRow(x + at, y + at, shape_.size);
      });
    } else {
      ForColumns([&](int64_t at, int64_t count) { ForwardColumns(x + at, y + at, count); });
    }
    if (is_guarded_) ClearNaNs(y);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const float* y = Floats(call.outputs[0]);
    const float* dy = Floats(call.output_gradients[0]);
    float* dx = Floats(gradient);
    if (shape_.inner == 1) {
      ForRows([&](int64_t at) {
        if constexpr (kIsLog) LogSoftmaxRowGradient(y + at, dy + at, dx + at, shape_.size);
        if constexpr (!kIsLog) SoftmaxRowGradient(y + at, dy + at, dx + at, shape_.size);
      });
    } else {
      ForColumns(
          [&](int64_t at, int64_t count) { BackwardColumns(y + at, dy + at, dx + at, count); });
    }
  }

 private:
  void ClearNaNs(float* y) const {
    ParallelFor(count_, kGrain, [y](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = y[i] == y[i] ? y[i] : 0.0F;
    });
  }

  template <typename Body>
  void ForRows(const Body& body) const {
    ParallelFor(shape_.outer, std::max<int64_t>(1, kGrain / 8 / shape_.size),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) body(row * shape_.size);
                });
  }

  // Calls body(offset, count) for groups of `count` neighbouring columns.
  template <typename Body>
  void ForColumns(const Body& body) const {
    const int64_t blocks = (shape_.inner + kColumns - 1) / kColumns;
    const int64_t grain = std::max<int64_t>(1, kGrain / 8 / (shape_.size * kColumns));
    ParallelFor(shape_.outer * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kColumns;
        body(i / blocks * shape_.size * shape_.inner + first,
             std::min(kColumns, shape_.inner - first));
      }
    });
  }

  void ForwardColumns(const float* x, float* y, int64_t count) const {
    float highest[kColumns];
    float sum[kColumns] = {};
    std::fill(highest, highest + kColumns, -std::numeric_limits<float>::infinity());
    ForElements(count, [&](int64_t at, int64_t c) {
      highest[c] = x[at] > highest[c] || x[at] != x[at] ? x[at] : highest[c];
    });
    ForElements(count, [&](int64_t at, int64_t c) {
      y[at] = Exp(x[at] - highest[c]);
      sum[c] += y[at];
    });
    if constexpr (kIsLog) {
      for (int64_t c = 0; c < count; ++c) sum[c] = std::log(sum[c]);
      ForElements(count, [&](int64_t at, int64_t c) { y[at] = (x[at] - highest[c]) - sum[c]; });
    } else {
      ForElements(count, [&](int64_t at, int64_t c) { y[at] /= sum[c]; });
    }
  }

  void BackwardColumns(const float* y, const float* dy, float* dx, int64_t count) const {
    float sum[kColumns] = {};
    if constexpr (kIsLog) {
      ForElements(count, [&](int64_t at, int64_t c) { sum[c] += dy[at]; });
      ForElements(count, [&](int64_t at, int64_t c) { dx[at] = dy[at] - Exp(y[at]) * sum[c]; });
    } else {
      ForElements(count, [&](int64_t at, int64_t c) { sum[c] += dy[at] * y[at]; });
      ForElements(count, [&](int64_t at, int64_t c) { dx[at] = y[at] * (dy[at] - sum[c]); });
    }
  }

  // Calls body(offset, column) for all columns, row by row.
  template <typename Body>
  void ForElements(int64_t count, const Body& body) const {
    for (int64_t i = 0; i < shape_.size; ++i) {
      for (int64_t c = 0; c < count; ++c) body(i * shape_.inner + c, c);
    }
  }

  SoftmaxShape shape_;
  bool is_guarded_;
  int64_t count_;
};

template <bool kIsLog>
Result<std::unique_ptr<PreparedOp>> PrepareSoftmax(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const SoftmaxShape shape, ReadSoftmaxShape(spec));
  return Prepared<SoftmaxOp<kIsLog>>(spec, shape);
}

constexpr OpRow kSoftmaxOps[] = {{"LogSoftmax", PrepareSoftmax<true>},
                                 {"Softmax", PrepareSoftmax<false>}};

}  // namespace

std::span<const OpRow> SoftmaxOps() { return kSoftmaxOps; }

// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: for each position, the negative log
// probability of its label.

namespace {

// Scores are [samples, classes, ...]. A place is a sample together with an index into the axes
// after the classes. The forward workspace holds each place's loss, then its weight.
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

  // Returns -1 for ignored places.
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

// ---- PointwiseLoss ----

// The arguments of one element's loss.
struct LossElement {
  float x, target, threshold, positive_weight;
};

float LogSigmoid(float x) { return std::min(0.0F, x) - std::log1p(std::exp(-std::abs(x))); }

float LossOf(PointwiseFunction function, const LossElement& e) {
  constexpr float kLowestLog = -100;  // PyTorch's, so that probabilities may be 0.
  const float distance = std::abs(e.x - e.target);
  switch (function) {
    case PointwiseFunction::kSquare:
      return distance * distance;
    case PointwiseFunction::kHuber:
      return distance < e.threshold ? 0.5F * distance * distance
                                    : e.threshold * (distance - 0.5F * e.threshold);
    case PointwiseFunction::kSmoothL1:
      return distance < e.threshold ? 0.5F * distance * distance / e.threshold
                                    : distance - 0.5F * e.threshold;
    case PointwiseFunction::kSoftMargin:
      return -LogSigmoid(e.target * e.x);
    case PointwiseFunction::kCrossEntropy:
      return (e.target - 1) * std::max(std::log1p(-e.x), kLowestLog) -
             e.target * std::max(std::log(e.x), kLowestLog);
    case PointwiseFunction::kCrossEntropyOfScores:
      return (1 - e.target) * e.x - (1 + (e.positive_weight - 1) * e.target) * LogSigmoid(e.x);
  }
  return 0;
}

float SlopeOf(PointwiseFunction function, const LossElement& e) {
  constexpr float kLeastProduct = 1e-12F;
  const float difference = e.x - e.target;
  const float sign = difference > 0 ? 1.0F : difference < 0 ? -1.0F : 0.0F;
  switch (function) {
    case PointwiseFunction::kSquare:
      return 2 * difference;
    case PointwiseFunction::kHuber:
      return std::clamp(difference, -e.threshold, e.threshold);
    case PointwiseFunction::kSmoothL1:
      return std::abs(difference) < e.threshold ? difference / e.threshold : sign;
    case PointwiseFunction::kSoftMargin:
      return -e.target / (1 + std::exp(e.target * e.x));
    case PointwiseFunction::kCrossEntropy:
      return difference / std::max(e.x * (1 - e.x), kLeastProduct);
    case PointwiseFunction::kCrossEntropyOfScores:
      return (1 - e.target) - (1 + (e.positive_weight - 1) * e.target) / (1 + std::exp(e.x));
  }
  return 0;
}

class PointwiseLossOp final : public PreparedOp {
 public:
  PointwiseLossOp(const OpSpec& spec, const PointwiseLossShape& shape) : shape_(shape) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (spec.input(i + 2).is_present) weights_[i] = spec.input(i + 2).elements();
    }
  }

  void Forward(const ForwardCall& call) override {
    auto* y = static_cast<float*>(call.outputs[0]);
    if (y == nullptr) return;
    const auto loss = [&, this](int64_t i) {
      return Weight(call.inputs, i) * LossOf(shape_.function, At(call.inputs, i));
    };
    if (shape_.total == LossTotal::kNone) {
      ParallelFor(shape_.elements, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = loss(i);
      });
      return;
    }
    double sum = 0;
    for (int64_t i = 0; i < shape_.elements; ++i) sum += static_cast<double>(loss(i));
    *y = static_cast<float>(sum / Divisor());
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    const auto factor = static_cast<float>((position == 0 ? 1 : -1) / Divisor());
    ParallelFor(shape_.elements, kGrain, [&, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float arrived = g == nullptr ? 0.0F : g[shape_.total == LossTotal::kNone ? i : 0];
        const float slope = SlopeOf(shape_.function, At(call.inputs, i));
        dx[i] = arrived * factor * Weight(call.inputs, i) * slope;
      }
    });
  }

 private:
  double Divisor() const {
    return shape_.total == LossTotal::kMean ? static_cast<double>(shape_.elements) : 1.0;
  }

  // A weight, or the positive weight, repeats along the leading axes.
  float Repeated(std::span<const void* const> inputs, size_t which, int64_t i) const {
    if (weights_[which] == 0) return 1;
    return static_cast<const float*>(inputs[which + 2])[i % weights_[which]];
  }
  float Weight(std::span<const void* const> inputs, int64_t i) const {
    return Repeated(inputs, 0, i);
  }
  LossElement At(std::span<const void* const> inputs, int64_t i) const {
    return {static_cast<const float*>(inputs[0])[i], static_cast<const float*>(inputs[1])[i],
            shape_.threshold, Repeated(inputs, 1, i)};
  }

  PointwiseLossShape shape_;
  int64_t weights_[2] = {0, 0};  // Elements; 0 without.
};

Result<std::unique_ptr<PreparedOp>> PreparePointwiseLoss(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const PointwiseLossShape shape, ReadPointwiseLossShape(spec));
  return Prepared<PointwiseLossOp>(spec, shape);
}

constexpr OpRow kLossOps[] = {
    {"PointwiseLoss", PreparePointwiseLoss},
    {"SoftmaxCrossEntropyLoss", PrepareLoss},
    {"NegativeLogLikelihoodLoss", PrepareLoss},
};

}  // namespace

std::span<const OpRow> LossOps() { return kLossOps; }

}  // namespace ckplan::cpu
