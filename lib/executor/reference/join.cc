// Concat and Split.
#include "lib/executor/reference/axes.h"
#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

void Concat(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const size_t axis = NormalAxis(spec.Int("axis", 1), outputs[0]);
  int64_t begin = 0;
  for (const Tensor& input : inputs) {
    ForEach(input.dims, [&](const Index& index, int64_t i) {
      Index to = index;
      to[axis] += begin;
      outputs[0][Offset(outputs[0], to)] = input[i];
    });
    begin += input.dims[axis];
  }
}

void Split(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const size_t axis = NormalAxis(spec.Int("axis", 0), inputs[0]);
  int64_t begin = 0;
  for (Tensor& output : outputs) {
    ForEach(output.dims, [&](const Index& index, int64_t i) {
      Index from = index;
      from[axis] += begin;
      output[i] = inputs[0][Offset(inputs[0], from)];
    });
    begin += output.dims[axis];
  }
}

constexpr FunctionRow kJoinReferences[] = {
    {"Concat", Concat},
    {"Split", Split},
};

constexpr CaseRow kJoinCases[] = {
    {"Concat", "f2x3 f2x4 -> f2x7", "axis=1"},
    {"Concat", "f2x3 f1x3 f4x3 -> f7x3", "axis=0"},
    {"Concat", "f2x3x2 f2x1x2 -> f2x4x2", "axis=-2"},
    {"Concat", "f2x3 -> f2x3", "axis=1"},
    {"Concat", "f2x0 f2x4 -> f2x4", "axis=1"},
    {"Concat", "i2(0..9) i1(0..9) -> i3", "axis=0"},
    {"Concat", "b2x3 b2x1 -> b2x4", "axis=1"},
    {"Concat", "f3x3000 f3x9000~ -> f3x12000", "axis=1"},
    {"Split", "f6x2 -> f2x2 f2x2 f2x2", "axis=0"},
    {"Split", "f2x6 i2=[2,4] -> f2x2 f2x4", "axis=1"},
    {"Split@2", "f2x6x2 -> f2x1x2 f2x5x2", "axis=-2 split=[1,5]"},
    {"Split", "f7 -> f3 f3 f1", "num_outputs=3"},
    {"Split", "i7 i2=[3,4] -> i3 i4"},
    {"Split", "f2x4 i2=[4,0] -> f2x4 f2x0", "axis=1"},
};

}  // namespace

std::span<const FunctionRow> JoinReferences() { return kJoinReferences; }
std::span<const CaseRow> JoinCases() { return kJoinCases; }

}  // namespace ckplan::reference
