// Elementwise operators with any number of inputs.
#include <algorithm>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/fold.h"

namespace ckplan::reference {

namespace {

void MeanOfInputs(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  Fold<[](const OpSpec&, double a, double b) { return a + b; }>(spec, inputs, outputs);
  for (double& value : outputs[0].values) value /= static_cast<double>(inputs.size());
}

constexpr FunctionRow kNaryReferences[] = {
    {"Sum", CKPLAN_FOLD(a + b)},
    {"Mean", MeanOfInputs},
    {"Max", CKPLAN_FOLD(std::max(a, b))},
    {"Min", CKPLAN_FOLD(std::min(a, b))},
};

constexpr CaseRow kNaryCases[] = {
    {"Max", "f2x3 f2x3 -> f2x3"},
    {"Max", "f2x3 f3 -> f2x3"},
    {"Max", "f2x3 fs f2x1 -> f2x3"},
    {"Max", "f2x3 fs=[0] -> f2x3"},
    {"Max", "i2x3(-3..3) i3(-3..3) -> i2x3"},
    {"Min", "f2x3 f2x3 -> f2x3"},
    {"Min", "f2x1 f3 f2x3 -> f2x3"},
    {"Min", "n2x3(-3..3) n3(-3..3) -> n2x3"},
    {"Sum", "f2x3 f2x3 f3 -> f2x3"},
    {"Sum", "f2x3 f2x1 -> f2x3"},
    {"Sum", "f7 -> f7"},
    {"Mean", "f2x3 f2x3 f3 -> f2x3"},
};

}  // namespace

std::span<const FunctionRow> NaryReferences() { return kNaryReferences; }
std::span<const CaseRow> NaryCases() { return kNaryCases; }

}  // namespace ckplan::reference
