// ReverseSequence.
#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

void ReverseSequence(const OpSpec& spec, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const auto batch = static_cast<size_t>(spec.Int("batch_axis", 1));
  const auto time = static_cast<size_t>(spec.Int("time_axis", 0));
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const auto length = static_cast<int64_t>(inputs[1][index[batch]]);
    Index from = index;
    if (index[time] < length) from[time] = length - 1 - index[time];
    outputs[0][i] = inputs[0][Offset(inputs[0], from)];
  });
}

constexpr FunctionRow kReverseReferences[] = {
    {"ReverseSequence", ReverseSequence},
};

constexpr CaseRow kReverseCases[] = {
    {"ReverseSequence", "f4x3 i3@[4,2,0] -> f4x3"},
    {"ReverseSequence", "f2x5x3 i2@[3,5] -> f2x5x3", "batch_axis=0 time_axis=1"},
    {"ReverseSequence", "i4x2(0..9) i2@[1,3] -> i4x2"},
};

}  // namespace

std::span<const FunctionRow> ReverseReferences() { return kReverseReferences; }
std::span<const CaseRow> ReverseCases() { return kReverseCases; }

}  // namespace ckplan::reference
