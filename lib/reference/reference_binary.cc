// Elementwise operators of several inputs, each broadcast to the output.
#include <cmath>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

// F: double(const OpSpec&, double a, double b), from the left to the right.

template <auto F>
void Fold(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    double value = inputs[0][Offset(inputs[0], index)];
    for (size_t k = 1; k < inputs.size(); ++k) {
      value = F(spec, value, inputs[k][Offset(inputs[k], index)]);
    }
    outputs[0][i] = value;
  });
}

void Mean(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  Fold<[](const OpSpec&, double a, double b) { return a + b; }>(spec, inputs, outputs);
  for (double& value : outputs[0].values) value /= static_cast<double>(inputs.size());
}

double Divide(const OpSpec& spec, double a, double b) {
  return spec.inputs[0].type == ElementType::kFloat32 ? a / b : std::trunc(a / b);
}

double Modulo(const OpSpec& spec, double a, double b) {
  if (spec.Int("fmod", 0) != 0) return std::fmod(a, b);
  return a - std::floor(a / b) * b;  // The sign of the divisor.
}

int64_t Bits(double value) { return static_cast<int64_t>(value); }

void Where(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const Tensor& from = inputs[0][Offset(inputs[0], index)] != 0 ? inputs[1] : inputs[2];
    outputs[0][i] = from[Offset(from, index)];
  });
}

#define CKPLAN_SCALAR(expression) \
  Fold<[](const OpSpec&, double a, double b) -> double { return (expression); }>

constexpr FunctionRow kRows[] = {
    {"Add", CKPLAN_SCALAR(a + b)},
    {"Sum", CKPLAN_SCALAR(a + b)},
    {"Sub", CKPLAN_SCALAR(a - b)},
    {"Mean", Mean},
    {"Mul", CKPLAN_SCALAR(a* b)},
    {"Div", Fold<Divide>},
    {"Pow", CKPLAN_SCALAR(std::pow(a, b))},
    {"Max", CKPLAN_SCALAR(std::max(a, b))},
    {"Min", CKPLAN_SCALAR(std::min(a, b))},
    {"PRelu", CKPLAN_SCALAR(a < 0 ? a * b : a)},
    {"Mod", Fold<Modulo>},
    {"Where", Where},
    {"And", CKPLAN_SCALAR(a != 0 && b != 0 ? 1 : 0)},
    {"Or", CKPLAN_SCALAR(a != 0 || b != 0 ? 1 : 0)},
    {"Xor", CKPLAN_SCALAR((a != 0) != (b != 0) ? 1 : 0)},
    {"BitwiseAnd", CKPLAN_SCALAR(static_cast<double>(Bits(a) & Bits(b)))},
    {"BitwiseOr", CKPLAN_SCALAR(static_cast<double>(Bits(a) | Bits(b)))},
    {"BitwiseXor", CKPLAN_SCALAR(static_cast<double>(Bits(a) ^ Bits(b)))},
    {"Equal", CKPLAN_SCALAR(a == b ? 1 : 0)},
    {"Less", CKPLAN_SCALAR(a < b ? 1 : 0)},
    {"LessOrEqual", CKPLAN_SCALAR(a <= b ? 1 : 0)},
    {"Greater", CKPLAN_SCALAR(a > b ? 1 : 0)},
    {"GreaterOrEqual", CKPLAN_SCALAR(a >= b ? 1 : 0)},
};

#undef CKPLAN_SCALAR

}  // namespace

std::span<const FunctionRow> BinaryFunctions() { return kRows; }

}  // namespace ckplan::reference
