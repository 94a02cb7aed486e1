// Gathering and scattering by indices.
#include <algorithm>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

int64_t AxisOf(const OpSpec& spec, const Tensor& data) {
  const int64_t axis = spec.Int("axis", 0);
  return axis < 0 ? axis + data.rank() : axis;
}

// Counted from the end where it is negative; -1 where it is outside.
int64_t Normal(double index, int64_t size) {
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
  const auto [axis, rank] = std::pair(AxisOf(spec, inputs[0]), inputs[1].rank());
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const Index place(index.begin() + axis, index.begin() + axis + rank);
    const int64_t at = Normal(inputs[1][Offset(inputs[1], place)], inputs[0].dim(axis));
    Index from(index.begin(), index.begin() + axis);
    from.push_back(at);
    from.insert(from.end(), index.begin() + axis + rank, index.end());
    outputs[0][i] = at < 0 ? 0 : inputs[0][Offset(inputs[0], from)];
  });
}

void GatherElements(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t axis = AxisOf(spec, inputs[0]);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    const int64_t at = Normal(inputs[1][i], inputs[0].dim(axis));
    from[static_cast<size_t>(axis)] = at;
    int64_t offset = 0;  // The data may be larger than the indices: no broadcasting.
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

// The index in the data that a tuple names, from axis `begin` on; empty where it is outside.
Index TupleAt(const Tensor& data, const Tensor& indices, const Index& place, size_t begin) {
  Index tuple;
  Index member = place;
  member.push_back(0);
  for (int64_t k = 0; k < indices.dims.back(); ++k) {
    member.back() = k;
    const size_t axis = begin + static_cast<size_t>(k);
    const int64_t at = Normal(indices[Offset(indices, member)], data.dims[axis]);
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

constexpr FunctionRow kRows[] = {
    {"Gather", Gather},           {"GatherElements", GatherElements},
    {"GatherND", GatherND},       {"ScatterElements", ScatterElements},
    {"Scatter", ScatterElements}, {"ScatterND", ScatterND},
};

}  // namespace

std::span<const FunctionRow> GatherFunctions() { return kRows; }

}  // namespace ckplan::reference
