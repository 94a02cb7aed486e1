// GatherElements and ScatterElements.
#include "lib/executor/reference/families.h"
#include "lib/executor/reference/indices.h"

namespace ckplan::reference {

namespace {

void GatherElements(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t axis = AxisOf(spec, inputs[0]);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    const int64_t at = Normal(inputs[1][i], inputs[0].dim(axis));
    from[static_cast<size_t>(axis)] = at;
    int64_t offset = 0;  // Not Offset, which broadcasts: the data may be larger than the indices.
    for (size_t k = 0; k < from.size(); ++k) offset = offset * inputs[0].dims[k] + from[k];
    outputs[0][i] = at < 0 ? 0 : inputs[0][offset];
  });
}

void ScatterElements(const OpSpec& spec, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const int64_t axis = AxisOf(spec, inputs[0]);
  outputs[0].values = inputs[0].values;
  ForEach(inputs[1].dims, [&](const Index& index, int64_t i) {
    Index to = index;
    const int64_t at = Normal(inputs[1][i], inputs[0].dim(axis));
    to[static_cast<size_t>(axis)] = at;
    if (at < 0) return;
    double& value = outputs[0][Offset(outputs[0], to)];
    value = Combined(spec, value, inputs[2][i]);
  });
}

constexpr FunctionRow kElementReferences[] = {
    {"GatherElements", GatherElements},
    {"ScatterElements", ScatterElements},
    {"Scatter", ScatterElements},
};

constexpr CaseRow kElementCases[] = {
    {"GatherElements", "f3x4 i3x4(0..2) -> f3x4", "axis=0"},
    {"GatherElements", "f3x4 i3x2(-4..3) -> f3x2", "axis=1"},
    {"GatherElements", "f5x4x3 i2x4x3(0..4) -> f2x4x3", "axis=0"},
    {"GatherElements", "f5x4x3 i5x9x2(0..3) -> f5x9x2", "axis=-2"},
    {"GatherElements", "f5x1x3 i2x1x2(0..2) -> f2x1x2", "axis=2"},
    {"GatherElements", "f300x70 i300x90(0..69) -> f300x90", "axis=1"},
    {"GatherElements", "i4(0..9) n2@[3,-1] -> i2", "axis=0"},
    {"ScatterElements", "f3x4 i2x4@[0,1,2,0,1,0,0,2] f2x4 -> f3x4", "axis=0"},
    {"ScatterElements", "f3x4 i3x2@[0,-1,2,1,3,0] f3x2 -> f3x4", "axis=1"},
    {"ScatterElements", "f3x4 i3x3(0..3) f3x3 -> f3x4", "axis=1 reduction='add'"},
    {"ScatterElements", "f5x3x4 i5x7x4(0..2) f5x7x4 -> f5x3x4", "axis=1 reduction='add'"},
    {"ScatterElements", "f3x4~ i3x3(0..3) f3x3~ -> f3x4", "axis=1 reduction='mul'"},
    {"ScatterElements", "f3x4~ i3x3(0..3) f3x3~ -> f3x4", "axis=1 reduction='max'"},
    {"ScatterElements", "n3x4(0..9) i3x3(0..3) n3x3(0..9) -> n3x4", "axis=1 reduction='min'"},
    {"ScatterElements", "i4(0..9) n2@[3,0] i2(0..9) -> i4"},
    {"Scatter@10", "f3x4 i2x4@[0,1,2,0,1,0,0,2] f2x4 -> f3x4", "axis=0"},
};

}  // namespace

std::span<const FunctionRow> ElementReferences() { return kElementReferences; }
std::span<const CaseRow> ElementCases() { return kElementCases; }

}  // namespace ckplan::reference
