// Tensors made of shapes and a few numbers.
#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

void ConstantOfShape(const OpSpec& spec, std::span<const Tensor>, std::span<Tensor> outputs) {
  double fill = 0;
  if (const auto found = spec.attributes.find("value"); found != spec.attributes.end()) {
    const KnownValue& value = std::get<KnownValue>(found->second);
    fill = value.reals.empty() ? static_cast<double>(value.ints[0]) : value.reals[0];
  }
  for (double& value : outputs[0].values) value = fill;
}

void Shape(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t start = spec.Int("start", 0);
  for (int64_t i = 0; i < outputs[0].size(); ++i) {
    const int64_t axis = start < 0 ? start + inputs[0].rank() + i : start + i;
    outputs[0][i] = static_cast<double>(inputs[0].dim(axis));
  }
}

void Size(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  outputs[0][0] = static_cast<double>(inputs[0].size());
}

void Range(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  for (int64_t i = 0; i < outputs[0].size(); ++i) {
    outputs[0][i] = inputs[0][0] + static_cast<double>(i) * inputs[2][0];
  }
}

void OneHot(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  int64_t axis = spec.Int("axis", -1);
  if (axis < 0) axis += outputs[0].rank();
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index at = index;
    at.erase(at.begin() + axis);
    auto hot = static_cast<int64_t>(inputs[0][Offset(inputs[0], at)]);
    if (hot < 0) hot += outputs[0].dim(axis);
    outputs[0][i] = inputs[2][hot == index[static_cast<size_t>(axis)] ? 1 : 0];
  });
}

void EyeLike(const OpSpec& spec, std::span<const Tensor>, std::span<Tensor> outputs) {
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    outputs[0][i] = index[1] - index[0] == spec.Int("k", 0) ? 1 : 0;
  });
}

constexpr FunctionRow kRows[] = {
    {"ConstantOfShape", ConstantOfShape},
    {"Shape", Shape},
    {"Size", Size},
    {"Range", Range},
    {"OneHot", OneHot},
    {"EyeLike", EyeLike},
};

}  // namespace

std::span<const FunctionRow> GenerateFunctions() { return kRows; }

}  // namespace ckplan::reference
