// Tensors generated from shapes and a few numbers.
#include "lib/executor/testing/op_case.h"

namespace ckplan::reference {

namespace {

void ConstantOfShape(const OpSpec& spec, std::span<const Tensor>, std::span<Tensor> outputs) {
  double fill = 0;
  if (const auto found = spec.attributes.find("value"); found != spec.attributes.end()) {
    const KnownValue& value = std::get<KnownValue>(found->second);
    fill = value.reals.empty() ? static_cast<double>(value.ints[0]) : value.reals[0];
    if (outputs[0].type == ElementType::kBool) fill = fill != 0 ? 1 : 0;
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

void Trilu(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const bool is_upper = spec.Int("upper", 1) != 0;
  const double k = inputs.size() > 1 && inputs[1].is_present ? inputs[1][0] : 0;
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const auto distance = static_cast<double>(index.back() - index[index.size() - 2]);
    const bool is_kept = is_upper ? distance >= k : distance <= k;
    outputs[0][i] = is_kept ? inputs[0][i] : 0;
  });
}

constexpr FunctionRow kGenerateReferences[] = {
    {"ConstantOfShape", ConstantOfShape},
    {"Shape", Shape},
    {"Size", Size},
    {"Range", Range},
    {"OneHot", OneHot},
    {"EyeLike", EyeLike},
    {"Trilu", Trilu},
};

constexpr CaseRow kGenerateCases[] = {
    {"ConstantOfShape", "i2=[2,3] -> f2x3"},
    {"ConstantOfShape", "i2=[2,3] -> f2x3", "value={-1.5}"},
    {"ConstantOfShape", "i1=[20001] -> i20001", "value={-7}"},
    {"ConstantOfShape", "i1=[3] -> n3", "value={-7}"},
    {"ConstantOfShape", "i1=[3] -> b3", "value={1}"},
    {"ConstantOfShape", "i1=[3] -> b3", "value={-1}"},
    {"Shape", "f2x3x4 -> i3"},
    {"Shape", "f2x3x4 -> i2", "start=1"},
    {"Shape", "f2x3x4 -> i1", "start=-2 end=-1"},
    {"Size", "f2x3x4 -> is"},
    {"Range", "is@[3] is@[12] is@[2] -> i5"},
    {"Range", "ns@[3] ns@[-5] ns@[-3] -> n3"},
    {"Range", "fs@[0.5] fs@[2.6] fs@[0.25] -> f9"},
    {"OneHot", "i4@[0,2,-1,9] is=[3] f2@[-1,5] -> f4x3"},
    {"OneHot", "i2x2(0..2) is=[3] f2@[0,1] -> f2x3x2", "axis=1"},
    {"OneHot", "n3@[0,1,2] is=[3] i2@[0,1] -> i3x3", "axis=0"},
    {"OneHot", "f2@[0,1] is=[2] b2@[0,1] -> b2x2"},
    {"EyeLike", "f3x4 -> f3x4"},
    {"EyeLike", "f3x4 -> i3x4", "k=1"},
    {"EyeLike", "i4x3 -> b4x3", "k=-2"},
    {"Trilu", "f4x5 -> f4x5"},
    {"Trilu", "f4x5 is=[1] -> f4x5"},
    {"Trilu", "f2x5x4 is=[-2] -> f2x5x4"},
    {"Trilu", "f2x4x4 -> f2x4x4", "upper=0"},
    {"Trilu", "f2x3x5 is=[2] -> f2x3x5", "upper=0"},
    {"Trilu", "f3x4 is=[-9] -> f3x4", "upper=0"},
    {"Trilu", "i3x4(-9..9) is=[1] -> i3x4"},
    {"Trilu", "b3x4 is=[1] -> b3x4", "upper=0"},
};

}  // namespace

std::span<const FunctionRow> GenerateReferences() { return kGenerateReferences; }
std::span<const CaseRow> GenerateCases() { return kGenerateCases; }

// Random operators have no reference. The backends' tests have cases for them.
std::span<const FunctionRow> RandomReferences() { return {}; }
std::span<const CaseRow> RandomCases() { return {}; }

}  // namespace ckplan::reference
