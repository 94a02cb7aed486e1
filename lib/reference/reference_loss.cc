// Losses by label.
#include <cmath>

#include "lib/reference/reference.h"

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

constexpr FunctionRow kRows[] = {
    {"SoftmaxCrossEntropyLoss", Loss},
    {"NegativeLogLikelihoodLoss", Loss},
};

}  // namespace

std::span<const FunctionRow> LossFunctions() { return kRows; }

}  // namespace ckplan::reference
