// Softmax and LogSoftmax.
#include <cmath>
#include <map>
#include <string>

#include "lib/executor/testing/op_case.h"

namespace ckplan::reference {

namespace {

// Below opset 13 all axes from `axis` on form one row; since opset 13 only the axis itself does.
void SoftmaxOf(const OpSpec& spec, const Tensor& x, Tensor& y, bool is_log) {
  int64_t axis = spec.Int("axis", spec.opset >= 13 ? -1 : 1);
  if (axis < 0) axis += x.rank();
  const auto group = [&](const Index& at) {
    int64_t number = 0;
    for (int64_t i = 0; i < x.rank(); ++i) {
      const bool is_inside = spec.opset >= 13 ? i == axis : i >= axis;
      if (!is_inside) number = number * x.dim(i) + at[static_cast<size_t>(i)];
    }
    return number;
  };
  std::map<int64_t, double> sums;
  ForEach(x.dims, [&](const Index& at, int64_t i) { sums[group(at)] += std::exp(x[i]); });
  ForEach(x.dims, [&](const Index& at, int64_t i) {
    const double sum = sums[group(at)];
    y[i] = is_log ? x[i] - std::log(sum) : std::exp(x[i]) / sum;
  });
}

void Softmax(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  SoftmaxOf(spec, inputs[0], outputs[0], false);
}

void LogSoftmax(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  SoftmaxOf(spec, inputs[0], outputs[0], true);
}

constexpr FunctionRow kSoftmaxReferences[] = {
    {"LogSoftmax", LogSoftmax},
    {"Softmax", Softmax},
};

constexpr CaseRow kSoftmaxCases[] = {
    {"Softmax", "f3x7 -> f3x7"},
    {"Softmax", "f2x3x40 -> f2x3x40", "axis=-1"},
    {"Softmax", "f3x600 -> f3x600"},
    {"Softmax", "f11x512(-30..30) -> f11x512"},
    {"Softmax", "f2x1028 -> f2x1028"},
    {"Softmax", "f2x17000 -> f2x17000"},
    {"Softmax", "f2x5x3x4 -> f2x5x3x4", "axis=1"},
    {"Softmax", "f3x70 -> f3x70", "axis=0"},
    {"Softmax", "f100x9 -> f100x9", "axis=0"},
    {"Softmax", "f9 -> f9"},
    {"Softmax", "f2x8(-80..80) -> f2x8"},
    {"Softmax@12", "f2x3x4 -> f2x3x4"},
    {"Softmax@9", "f2x3x4 -> f2x3x4", "axis=2"},
    {"Softmax@11", "f2x3x4 -> f2x3x4", "axis=0"},
    {"Softmax", "f2x4~@[1,-inf,0,2,-inf,-inf,-inf,-inf] -> f2x4"},
    {"Softmax", "f4x2~@[1,-inf,-inf,-inf,0,-inf,3,-inf] -> f4x2", "axis=0"},
    {"LogSoftmax", "f3x7 -> f3x7"},
    {"LogSoftmax", "f2x3x40(-60..60) -> f2x3x40", "axis=2"},
    {"LogSoftmax", "f3x700(-30..30) -> f3x700"},
    {"LogSoftmax", "f2x5x3x4 -> f2x5x3x4", "axis=1"},
    {"LogSoftmax@12", "f2x3x4 -> f2x3x4"},
};

}  // namespace

std::span<const FunctionRow> SoftmaxReferences() { return kSoftmaxReferences; }
std::span<const CaseRow> SoftmaxCases() { return kSoftmaxCases; }

// Losses.

namespace {

void Loss(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& labels = inputs[1];
  Tensor logs = inputs[0];
  const auto class_index = [](const Index& place, int64_t label) {
    Index index = place;
    index.insert(index.begin() + 1, label);
    return index;
  };
  if (spec.type == "SoftmaxCrossEntropyLoss") {
    ForEach(labels.dims, [&](const Index& place, int64_t) {
      double sum = 0;
      for (int64_t k = 0; k < logs.dim(1); ++k) {
        sum += std::exp(logs[Offset(logs, class_index(place, k))]);
      }
      for (int64_t k = 0; k < logs.dim(1); ++k) {
        logs[Offset(logs, class_index(place, k))] -= std::log(sum);
      }
    });
  }
  if (outputs.size() > 1 && outputs[1].is_present) outputs[1].values = logs.values;
  const std::string reduction = spec.String("reduction", "mean");
  double loss = 0, weight = 0;
  ForEach(labels.dims, [&](const Index& place, int64_t i) {
    const auto label = static_cast<int64_t>(labels[i]);
    if (spec.Has("ignore_index") && label == spec.Int("ignore_index", 0)) return;
    const double own = inputs.size() > 2 && inputs[2].is_present ? inputs[2][label] : 1;
    const double value = -own * logs[Offset(logs, class_index(place, label))];
    if (reduction == "none") outputs[0][i] = value;
    loss += value;
    weight += own;
  });
  if (reduction == "sum") outputs[0][0] = loss;
  if (reduction == "mean") outputs[0][0] = loss / weight;
}

void PointwiseLoss(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::string function = spec.String("function", "");
  const std::string reduction = spec.String("reduction", "mean");
  const double threshold = spec.Float("threshold", 1);
  const auto weight_or_one = [&](size_t input, int64_t i) {
    if (inputs.size() <= input || !inputs[input].is_present) return 1.0;
    return inputs[input][i % inputs[input].size()];
  };
  double sum = 0;
  for (int64_t i = 0; i < inputs[0].size(); ++i) {
    const double x = inputs[0][i], t = inputs[1][i], z = std::abs(x - t), d = threshold;
    double loss = z * z;
    if (function == "huber_loss") loss = z < d ? z * z / 2 : d * (z - d / 2);
    if (function == "smooth_l1_loss") loss = z < d ? z * z / 2 / d : z - d / 2;
    if (function == "soft_margin_loss") loss = std::log(1 + std::exp(-t * x));
    const bool has_scores = function == "binary_cross_entropy_with_logits";
    if (has_scores || function == "binary_cross_entropy") {
      const double p = has_scores ? 1 / (1 + std::exp(-x)) : x;
      loss = -(weight_or_one(3, i) * t * std::log(p) + (1 - t) * std::log(1 - p));
    }
    loss *= weight_or_one(2, i);
    sum += loss;
    if (reduction == "none") outputs[0][i] = loss;
  }
  if (reduction == "sum") outputs[0][0] = sum;
  if (reduction == "mean") outputs[0][0] = sum / static_cast<double>(inputs[0].size());
}

constexpr FunctionRow kLossReferences[] = {
    {"PointwiseLoss", PointwiseLoss},
    {"SoftmaxCrossEntropyLoss", Loss},
    {"NegativeLogLikelihoodLoss", Loss},
};

constexpr CaseRow kLossCases[] = {
    {"PointwiseLoss", "f3x5 f3x5 -> fs", "function='mse_loss'"},
    {"PointwiseLoss", "f3x5 f3x5* -> f3x5", "function='mse_loss' reduction='none'"},
    {"PointwiseLoss", "f30x50 f30x50* -> fs", "function='mse_loss'"},
    {"PointwiseLoss", "f3x5 f3x5 -> fs", "function='huber_loss' threshold=0.7"},
    {"PointwiseLoss", "f3x5 f3x5* -> fs",
     "function='smooth_l1_loss' threshold=0.4 reduction='sum'"},
    {"PointwiseLoss", "f3x5 f3x5* -> f3x5", "function='smooth_l1_loss' reduction='none'"},
    {"PointwiseLoss", "f3x5 f3x5* -> fs", "function='soft_margin_loss'"},
    {"PointwiseLoss", "f3x5(0.1..0.9) f3x5*(0..1) f5*(0.5..2) -> fs",
     "function='binary_cross_entropy'"},
    {"PointwiseLoss", "f3x5(0.1..0.9) f3x5*(0..1) -> fs",
     "function='binary_cross_entropy' reduction='sum'"},
    {"PointwiseLoss", "f3x5 f3x5*(0..1) f3x5*(0.5..2) f5*(0.5..2) -> fs",
     "function='binary_cross_entropy_with_logits'"},
    {"PointwiseLoss", "f3x5 f3x5*(0..1) -> f3x5",
     "function='binary_cross_entropy_with_logits' reduction='none'"},
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,0,2] -> fs"},
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,0,2] -> fs f3x5"},
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,0,2] f5*(0.5..2) -> fs f3x5", "reduction='mean'"},
    {"SoftmaxCrossEntropyLoss", "f3x5 n3@[4,0,2] -> f3 f3x5", "reduction='none'"},
    {"SoftmaxCrossEntropyLoss", "f2x5x3 i2x3(0..4) f5*(0.5..2) -> f2x3", "reduction='none'"},
    {"SoftmaxCrossEntropyLoss", "f2x5x3x2 i2x3x2(0..4) -> fs", "reduction='sum' ignore_index=2"},
    {"SoftmaxCrossEntropyLoss", "f3x5 i3@[4,-1,2] f5*(0.5..2) -> fs", "ignore_index=-1"},
    {"SoftmaxCrossEntropyLoss", "f600x90(-9..9) i600(0..89) -> fs f600x90"},
    {"SoftmaxCrossEntropyLoss", "f9000x2 i9000(0..1) -> fs"},
    {"NegativeLogLikelihoodLoss", "f3x5 i3@[4,0,2] -> fs"},
    {"NegativeLogLikelihoodLoss", "f3x5 i3@[4,0,2] f5*(0.5..2) -> fs"},
    {"NegativeLogLikelihoodLoss", "f2x5x3 i2x3(0..4) -> f2x3", "reduction='none'"},
    {"NegativeLogLikelihoodLoss", "f2x5x3 n2x3(0..4) f5* -> fs", "reduction='sum'"},
    {"NegativeLogLikelihoodLoss", "f2x5x3 i2x3(0..4) -> fs", "ignore_index=0"},
};

}  // namespace

std::span<const FunctionRow> LossReferences() { return kLossReferences; }
std::span<const CaseRow> LossCases() { return kLossCases; }

}  // namespace ckplan::reference
