// Arithmetic of two operands.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/fold.h"

namespace ckplan::reference {

namespace {

double Divide(const OpSpec& spec, double a, double b) {
  return spec.inputs[0].type == ElementType::kFloat32 ? a / b : std::trunc(a / b);
}

double Modulo(const OpSpec& spec, double a, double b) {
  if (spec.Int("fmod", 0) != 0) return std::fmod(a, b);
  return a - std::floor(a / b) * b;  // The result has the divisor's sign.
}

constexpr FunctionRow kBinaryReferences[] = {
    {"Add", CKPLAN_FOLD(a + b)},
    {"Sub", CKPLAN_FOLD(a - b)},
    {"Mul", CKPLAN_FOLD(a* b)},
    {"Div", Fold<Divide>},
    {"Pow", CKPLAN_FOLD(std::pow(a, b))},
    {"PRelu", CKPLAN_FOLD(a < 0 ? a * b : a)},
    {"Mod", Fold<Modulo>},
};

constexpr CaseRow kBinaryCases[] = {
    {"Add", "f2x3x4 f2x3x4 -> f2x3x4"},
    {"Add", "f2x3x4 fs -> f2x3x4"},
    {"Add", "fs f2x3x4 -> f2x3x4"},
    {"Add", "fs fs -> fs"},
    {"Add", "f2x3x4 f4 -> f2x3x4"},
    {"Add", "f3x1x1 f2x3x2x2 -> f2x3x2x2"},
    {"Add", "f2x1x4 f1x3x1 -> f2x3x4"},
    {"Add", "f4x1 f1x4 -> f4x4"},
    {"Add", "f2x1x2x1x3 f1x4x1x2x1 -> f2x4x2x2x3"},
    {"Add", "f1x4 f4 -> f1x4"},
    {"Add", "f0x4 f4 -> f0x4"},
    {"Add", "f3x4 f3x1 -> f3x4"},
    {"Add", "f20011x2 f2* -> f20011x2"},
    {"Add", "f2* f7x3x2 -> f7x3x2"},
    {"Add", "i2x3(-9..9) i3(-9..9) -> i2x3"},
    {"Add", "n2x3(-9..9) n2x1(-9..9) -> n2x3"},
    {"Sub", "f2x3 f2x3 -> f2x3"},
    {"Sub", "f2x3 f3 -> f2x3"},
    {"Sub", "f2x1 f3 -> f2x3"},
    {"Sub", "fs f2x3 -> f2x3"},
    {"Sub", "i2x3(-9..9) is(-9..9) -> i2x3"},
    {"Mul", "f2x3x4 f2x3x4 -> f2x3x4"},
    {"Mul", "f2x3x4 fs -> f2x3x4"},
    {"Mul", "f2x3x4 fs=[0.5] -> f2x3x4"},
    {"Mul", "f2x3x2x2 f2x3x1x1 -> f2x3x2x2"},
    {"Mul", "f2x3x2x2 f1x3x1x1 -> f2x3x2x2"},
    {"Mul", "f2x3x4 f4 -> f2x3x4"},
    {"Mul", "f2x1x4 f1x3x1 -> f2x3x4"},
    {"Mul", "f2x9000 f2x1 -> f2x9000"},
    {"Mul", "f2x3x4 f2x3x4~ -> f2x3x4"},
    {"Mul", "f5x1 f1x3 -> f5x3"},
    {"Mul", "i2x3(-9..9) is(-9..9) -> i2x3"},
    {"Div", "f2x3 f2x3(0.5..2) -> f2x3"},
    {"Div", "f2x3 f3(0.5..2) -> f2x3"},
    {"Div", "f2x3 fs(0.5..2) -> f2x3"},
    {"Div", "f2x3 f2x1(-2..-0.5) -> f2x3"},
    {"Div", "fs f2x3(0.5..2) -> f2x3"},
    {"Div", "f2x3 fs=[8] -> f2x3"},
    {"Div", "i2x3(-9..9) is@[-2] -> i2x3"},
    {"Pow", "f2x3(0.5..2) f2x3 -> f2x3"},
    {"Pow", "f2x3(0.5..2) f3 -> f2x3"},
    {"Pow", "f9 fs=[2] -> f9"},
    {"Pow", "f9 fs=[3] -> f9"},
    {"Pow", "f9(0.2..2) fs=[0.5] -> f9"},
    {"Pow", "f9(0.2..2) fs=[-0.5] -> f9", "", 1e-4},
    {"Pow", "f9 fs@[3] -> f9", "", 1e-4},
    {"Pow", "fs=[2] f9 -> f9"},
    {"Pow", "f9 is=[2] -> f9"},
    {"Pow", "i5(-3..3) is=[2] -> i5"},
    {"PRelu", "f2x3x4 f3x1 -> f2x3x4"},
    {"PRelu", "f2x3x4 f1 -> f2x3x4"},
    {"PRelu", "f2x3x4 f2x3x4 -> f2x3x4"},
    {"PRelu", "f2x3x4 f3x1* -> f2x3x4"},
    {"Mod", "i7(-9..9) is@[4] -> i7"},
    {"Mod", "i7(-9..9) is@[-4] -> i7"},
    {"Mod", "i7(-9..9) is@[4] -> i7", "fmod=1"},
    {"Mod", "f7(2.1..2.9) f7(0.9..1) -> f7", "fmod=1"},
    {"Mod", "f2x3(-2.9..-2.1) fs(0.9..1) -> f2x3", "fmod=1"},
};

}  // namespace

std::span<const FunctionRow> BinaryReferences() { return kBinaryReferences; }
std::span<const CaseRow> BinaryCases() { return kBinaryCases; }

}  // namespace ckplan::reference
