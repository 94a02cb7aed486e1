// Comparisons, boolean and bitwise logic, and Where.
#include "lib/executor/reference/families.h"
#include "lib/executor/reference/fold.h"

namespace ckplan::reference {

namespace {

int64_t Bits(double value) { return static_cast<int64_t>(value); }

void Where(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const Tensor& from = inputs[0][Offset(inputs[0], index)] != 0 ? inputs[1] : inputs[2];
    outputs[0][i] = from[Offset(from, index)];
  });
}

constexpr FunctionRow kLogicReferences[] = {
    {"Where", Where},
    {"And", CKPLAN_FOLD(a != 0 && b != 0 ? 1 : 0)},
    {"Or", CKPLAN_FOLD(a != 0 || b != 0 ? 1 : 0)},
    {"Xor", CKPLAN_FOLD((a != 0) != (b != 0) ? 1 : 0)},
    {"BitwiseAnd", CKPLAN_FOLD(static_cast<double>(Bits(a) & Bits(b)))},
    {"BitwiseOr", CKPLAN_FOLD(static_cast<double>(Bits(a) | Bits(b)))},
    {"BitwiseXor", CKPLAN_FOLD(static_cast<double>(Bits(a) ^ Bits(b)))},
    {"Equal", CKPLAN_FOLD(a == b ? 1 : 0)},
    {"Less", CKPLAN_FOLD(a < b ? 1 : 0)},
    {"LessOrEqual", CKPLAN_FOLD(a <= b ? 1 : 0)},
    {"Greater", CKPLAN_FOLD(a > b ? 1 : 0)},
    {"GreaterOrEqual", CKPLAN_FOLD(a >= b ? 1 : 0)},
};

constexpr CaseRow kLogicCases[] = {
    {"Where", "b2x3 f2x3 f2x3 -> f2x3"},
    {"Where", "b2x3 f2x3 fs=[-1] -> f2x3"},
    {"Where", "b1x3 f2x1 f2x3 -> f2x3"},
    {"Where", "b3 fs f2x3 -> f2x3"},
    {"Where", "b2x1x3 f2x4x3 fs* -> f2x4x3"},
    {"Where", "b2x3 i2x3(0..9) is(0..9) -> i2x3"},
    {"Where", "b2x3 b2x3 b3 -> b2x3"},
    {"And", "b2x3 b3 -> b2x3"},
    {"Or", "b2x3 b2x3 -> b2x3"},
    {"Xor", "b2x3 b2x1 -> b2x3"},
    {"BitwiseAnd", "i2x3(-9..9) i3(-9..9) -> i2x3"},
    {"BitwiseOr", "n2x3(-9..9) n2x1(-9..9) -> n2x3"},
    {"BitwiseXor", "i2x3(-9..9) i2x3(-9..9) -> i2x3"},
    {"Equal", "i2x3(0..2) i3(0..2) -> b2x3"},
    {"Equal", "f4@[1,2,3,4] f4@[1,0,3,0] -> b4"},
    {"Equal", "b2x3 b2x3 -> b2x3"},
    {"Less", "f2x3 f3 -> b2x3"},
    {"Less", "i2x1(0..3) i3(0..3) -> b2x3"},
    {"LessOrEqual", "i2x3(0..2) i3(0..2) -> b2x3"},
    {"LessOrEqual", "f2x3 fs -> b2x3"},
    {"Greater", "n2x3(0..2) n3(0..2) -> b2x3"},
    {"Greater", "f2x3 f2x3 -> b2x3"},
    {"GreaterOrEqual", "i2x3(0..2) i2x3(0..2) -> b2x3"},
    {"GreaterOrEqual", "f2x3 fs -> b2x3"},
};

}  // namespace

std::span<const FunctionRow> LogicReferences() { return kLogicReferences; }
std::span<const CaseRow> LogicCases() { return kLogicCases; }

}  // namespace ckplan::reference
