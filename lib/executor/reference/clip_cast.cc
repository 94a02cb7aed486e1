// Clip and the casts between element types.
#include <algorithm>
#include <cmath>

#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

void Clip(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const auto limit = [&](size_t position, const char* attribute, double otherwise) {
    if (position < inputs.size() && inputs[position].is_present) return inputs[position][0];
    return spec.Float(attribute, otherwise);
  };
  const double low = limit(1, "min", -HUGE_VAL);
  const double high = limit(2, "max", HUGE_VAL);
  for (int64_t i = 0; i < outputs[0].size(); ++i) {
    outputs[0][i] = std::min(std::max(inputs[0][i], low), high);
  }
}

void Cast(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  for (int64_t i = 0; i < outputs[0].size(); ++i) {
    const double x = inputs[0][i];
    switch (outputs[0].type) {
      case ElementType::kFloat32:
      case ElementType::kBFloat16:
        outputs[0][i] = x;
        break;
      case ElementType::kBool:
        outputs[0][i] = x != 0 ? 1 : 0;
        break;
      default:
        outputs[0][i] = std::trunc(x);
    }
  }
}

constexpr FunctionRow kClipCastReferences[] = {
    {"Clip", Clip},
    {"Cast", Cast},
    {"CastLike", Cast},
};

constexpr CaseRow kClipCastCases[] = {
    {"Clip", "f31 fs=[-0.5] fs=[1.1] -> f31"},
    {"Clip", "f31 _ fs=[1.1] -> f31"},
    {"Clip", "f31 fs=[0] -> f31"},
    {"Clip", "f31 fs*@[-1] fs*@[0.5] -> f31"},  // Not known before the step.
    {"Clip", "f31 -> f31"},
    {"Clip", "i9(-9..9) is=[-2] is=[3] -> i9"},
    {"Clip@6", "f31 -> f31", "min=-1.0 max=0.75"},
    {"Clip@6", "f31 -> f31", "max=0.75"},
    {"Cast", "f9(-3..3) -> i9", "to=7"},
    {"Cast", "f9(-3..3) -> n9", "to=6"},
    {"Cast", "f4@[0,-1,0.5,0] -> b4", "to=9"},
    {"Cast", "i9(-9..9) -> f9", "to=1"},
    {"Cast", "i9(-9..9) -> n9", "to=6"},
    {"Cast", "i9(-1..1) -> b9", "to=9"},
    {"Cast", "n9(-9..9) -> i9", "to=7"},
    {"Cast", "n9(-9..9) -> f9", "to=1"},
    {"Cast", "b9 -> f9", "to=1"},
    {"Cast", "b9 -> i9", "to=7"},
    {"Cast", "b9 -> n9", "to=6"},
    {"Cast", "f9 -> f9", "to=1"},
    {"CastLike", "i9(-9..9) f3 -> f9"},
    {"CastLike", "f9 f3 -> f9"},
};

}  // namespace

std::span<const FunctionRow> ClipCastReferences() { return kClipCastReferences; }
std::span<const CaseRow> ClipCastCases() { return kClipCastCases; }

}  // namespace ckplan::reference
