// Gather, GatherND and ScatterND.
#include <algorithm>

#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

namespace {

// Reads indices and combines elements with updates.

int64_t AxisOf(const OpSpec& spec, const Tensor& data) {
  const int64_t axis = spec.Int("axis", 0);
  return axis < 0 ? axis + data.rank() : axis;
}

// Converts a possibly negative index to one counted from 0; -1 if it is out of range.
int64_t NormalIndex(double index, int64_t size) {
  const auto at = static_cast<int64_t>(index < 0 ? index + static_cast<double>(size) : index);
  return at >= 0 && at < size ? at : -1;
}

double Combined(const OpSpec& spec, double old, double update) {
  const std::string reduction = spec.String("reduction", "none");
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "max") return std::max(old, update);
  if (reduction == "min") return std::min(old, update);
  return update;
}

void Gather(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t axis = AxisOf(spec, inputs[0]);
  const int64_t rank = inputs[1].rank();
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const Index place(index.begin() + axis, index.begin() + axis + rank);
    const int64_t at = NormalIndex(inputs[1][Offset(inputs[1], place)], inputs[0].dim(axis));
    Index from(index.begin(), index.begin() + axis);
    from.push_back(at);
    from.insert(from.end(), index.begin() + axis + rank, index.end());
    outputs[0][i] = at < 0 ? 0 : inputs[0][Offset(inputs[0], from)];
  });
}

// Returns the data index that a tuple names, from axis `begin` on; empty if it is out of range.
Index TupleAt(const Tensor& data, const Tensor& indices, const Index& place, size_t begin) {
  Index tuple;
  Index member = place;
  member.push_back(0);
  for (int64_t k = 0; k < indices.dims.back(); ++k) {
    member.back() = k;
    const size_t axis = begin + static_cast<size_t>(k);
    const int64_t at = NormalIndex(indices[Offset(indices, member)], data.dims[axis]);
    if (at < 0) return {};
    tuple.push_back(at);
  }
  return tuple;
}

void GatherND(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t batch = spec.Int("batch_dims", 0);
  const int64_t places = inputs[1].rank() - 1;
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const Index place(index.begin(), index.begin() + places);
    const Index tuple = TupleAt(inputs[0], inputs[1], place, static_cast<size_t>(batch));
    Index from(index.begin(), index.begin() + batch);
    from.insert(from.end(), tuple.begin(), tuple.end());
    from.insert(from.end(), index.begin() + places, index.end());
    outputs[0][i] = tuple.empty() ? 0 : inputs[0][Offset(inputs[0], from)];
  });
}

void ScatterND(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t places = inputs[1].rank() - 1;
  outputs[0].values = inputs[0].values;
  ForEach(inputs[2].dims, [&](const Index& index, int64_t i) {
    const Index place(index.begin(), index.begin() + places);
    Index to = TupleAt(inputs[0], inputs[1], place, 0);
    if (to.empty()) return;
    to.insert(to.end(), index.begin() + places, index.end());
    double& value = outputs[0][Offset(outputs[0], to)];
    value = Combined(spec, value, inputs[2][i]);
  });
}

constexpr FunctionRow kGatherReferences[] = {
    {"Gather", Gather},
    {"GatherND", GatherND},
    {"ScatterND", ScatterND},
};

constexpr CaseRow kGatherCases[] = {
    {"Gather", "f5x3 i4@[0,2,2,4] -> f4x3", "axis=0"},
    {"Gather", "f5x3 i2x2@[0,-1,2,0] -> f2x2x3", "axis=0"},
    {"Gather", "f2x5x3 i4@[4,2,2,0] -> f2x4x3", "axis=1"},
    {"Gather", "f2x5x3 is@[1] -> f2x3", "axis=1"},
    {"Gather", "f2x5x3 i1=[2] -> f2x5x1", "axis=-1"},
    {"Gather", "f2x5 n3@[0,4,-5] -> f2x3", "axis=1"},
    {"Gather", "f4x3 i3@[0,9,-9] -> f3x3"},
    {"Gather", "f211x97 i300(0..210) -> f300x97", "axis=0"},
    {"Gather", "f3x70x40 i9(-70..69) -> f3x9x40", "axis=1"},
    {"Gather", "f2x3 i300(0..1) -> f300x3", "axis=0"},
    {"Gather", "f2x4x3 i200(0..0) -> f2x200x3", "axis=1"},
    {"Gather", "f2x4x8 i200(0..1) -> f2x200x8", "axis=1"},
    {"Gather", "i5(0..99) i2x2@[0,4,2,2] -> i2x2"},
    {"Gather", "b5 i2@[4,0] -> b2"},
    {"Gather", "f5x0 i2@[4,0] -> f2x0"},
    {"Gather", "f0x3 i0@[] -> f0x3"},
    {"GatherND", "f3x4 i5x2@[0,0,2,3,1,1,2,3,-1,-1] -> f5"},
    {"GatherND", "f3x4 i2x1@[2,0] -> f2x4"},
    {"GatherND", "f3x4x2 i2x2x2@[0,0,2,3,1,1,2,3] -> f2x2x2"},
    {"GatherND", "f2x3x4 i2x2x1(0..2) -> f2x2x4", "batch_dims=1"},
    {"GatherND", "f2x3x4 i2x3x1(0..3) -> f2x3", "batch_dims=2"},
    {"GatherND", "f2x3x4 i2x5x2(0..2) -> f2x5", "batch_dims=1"},
    {"GatherND", "f150x120 i500x1(0..149) -> f500x120"},
    {"GatherND", "b3x4 i2x2@[0,0,2,3] -> b2"},
    {"ScatterND", "f5x3 i2x1@[3,0] f2x3 -> f5x3"},
    {"ScatterND", "f5x3 i2x2@[3,0,-1,2] f2 -> f5x3"},
    {"ScatterND", "f4x3x2 i2x1x2@[3,0,1,2] f2x1x2 -> f4x3x2"},
    {"ScatterND", "f5x3 i4x1@[3,0,3,3] f4x3 -> f5x3", "reduction='add'"},
    {"ScatterND", "f150x120 i200x1(0..149) f200x120 -> f150x120", "reduction='add'"},
    {"ScatterND", "f3x2 i150x1(1..1) f150x2 -> f3x2", "reduction='add'"},
    {"ScatterND", "f3x2~ i150x1(0..2) f150x2~ -> f3x2"},
    {"ScatterND", "f5x3~ i4x1@[3,0,3,3] f4x3~ -> f5x3", "reduction='mul'"},
    {"ScatterND", "f5x3~ i4x1@[3,0,3,3] f4x3~ -> f5x3", "reduction='max'"},
    {"ScatterND", "i5(0..9) i4x1@[3,0,3,3] i4(0..9) -> i5", "reduction='min'"},
    {"ScatterND", "i5(0..9) i2x1@[3,7] i2(0..9) -> i5"},
    {"ScatterND", "b5 i2x1@[3,1] b2 -> b5"},
};

}  // namespace

std::span<const FunctionRow> GatherReferences() { return kGatherReferences; }
std::span<const CaseRow> GatherCases() { return kGatherCases; }

// GatherElements and ScatterElements.

namespace {

void GatherElements(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t axis = AxisOf(spec, inputs[0]);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    const int64_t at = NormalIndex(inputs[1][i], inputs[0].dim(axis));
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
    const int64_t at = NormalIndex(inputs[1][i], inputs[0].dim(axis));
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
