// Losses.
#include <cmath>
#include <string>

#include "lib/executor/reference/families.h"

namespace ckplan::reference {

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

constexpr FunctionRow kLossReferences[] = {
    {"SoftmaxCrossEntropyLoss", Loss},
    {"NegativeLogLikelihoodLoss", Loss},
};

constexpr CaseRow kLossCases[] = {
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
