// Activation functions.
#include <algorithm>
#include <cmath>

#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

namespace {

// Elementwise functions of two inputs, folded over any number of inputs.

// F is double(const OpSpec&, double a, double b); it is applied from left to right.

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

#define CKPLAN_FOLD(expression) \
  Fold<[](const OpSpec&, double a, double b) -> double { return (expression); }>

// Elementwise functions of one input.

// F is double(const OpSpec&, double x).

template <auto F>
void Map(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  for (int64_t i = 0; i < outputs[0].size(); ++i) outputs[0][i] = F(spec, inputs[0][i]);
}

#define CKPLAN_MAP(expression) Map<[](const OpSpec&, double x) -> double { return (expression); }>

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double ScaledSoftplus(const OpSpec& spec, double x) {
  const double factor = spec.Float("factor", 1);
  return Softplus(factor * x) / factor;
}

double LeakyRelu(const OpSpec& spec, double x) { return x < 0 ? spec.Float("alpha", 0.01) * x : x; }

double Elu(const OpSpec& spec, double x) {
  return x < 0 ? spec.Float("alpha", 1.0) * std::expm1(x) : x;
}

double Selu(const OpSpec& spec, double x) {
  const double alpha = spec.Float("alpha", 1.6732632423543772);
  return spec.Float("gamma", 1.0507009873554805) * (x < 0 ? alpha * std::expm1(x) : x);
}

double Celu(const OpSpec& spec, double x) {
  const double alpha = spec.Float("alpha", 1.0);
  return std::max(x, 0.0) + std::min(0.0, alpha * std::expm1(x / alpha));
}

double Gelu(const OpSpec& spec, double x) {
  if (spec.String("approximate", "none") == "tanh") {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

double Swish(const OpSpec& spec, double x) { return x * Sigmoid(spec.Float("alpha", 1.0) * x); }

double HardSigmoid(const OpSpec& spec, double x) {
  return std::max(0.0, std::min(1.0, spec.Float("alpha", 0.2) * x + spec.Float("beta", 0.5)));
}

double ThresholdedRelu(const OpSpec& spec, double x) {
  return x > spec.Float("alpha", 1.0) ? x : 0;
}

double Shrink(const OpSpec& spec, double x) {
  const double lambda = spec.Float("lambd", 0.5);
  const double bias = spec.Float("bias", 0.0);
  return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
}

constexpr FunctionRow kActivationReferences[] = {
    {"Relu", CKPLAN_MAP(std::max(x, 0.0))},
    {"LeakyRelu", Map<LeakyRelu>},
    {"Sigmoid", CKPLAN_MAP(Sigmoid(x))},
    {"Tanh", CKPLAN_MAP(std::tanh(x))},
    {"Elu", Map<Elu>},
    {"Selu", Map<Selu>},
    {"Celu", Map<Celu>},
    {"Softplus", Map<ScaledSoftplus>},
    {"Softsign", CKPLAN_MAP(x / (1 + std::abs(x)))},
    {"Gelu", Map<Gelu>},
    {"Swish", Map<Swish>},
    {"Mish", CKPLAN_MAP(x* std::tanh(Softplus(x)))},
    {"HardSwish", CKPLAN_MAP(x* std::max(0.0, std::min(1.0, x / 6 + 0.5)))},
    {"HardSigmoid", Map<HardSigmoid>},
    {"ThresholdedRelu", Map<ThresholdedRelu>},
    {"Shrink", Map<Shrink>},
};

constexpr CaseRow kActivationCases[] = {
    {"Relu", "f2x3x5 -> f2x3x5"},
    {"Relu", "f0x3 -> f0x3"},
    {"Relu", "f40007 -> f40007"},  // More than one thread's share, and not a multiple of it.
    {"Relu", "i5(-3..3) -> i5"},
    {"LeakyRelu", "f31 -> f31"},
    {"LeakyRelu", "f31 -> f31", "alpha=0.3"},
    {"Sigmoid", "f37(-9..9) -> f37"},
    {"Tanh", "f37(-5..5) -> f37"},
    {"Elu", "f31 -> f31"},
    {"Elu", "f31 -> f31", "alpha=0.7"},
    {"Selu", "f31 -> f31"},
    {"Selu", "f31 -> f31", "alpha=1.2 gamma=2.0"},
    {"Celu", "f31 -> f31"},
    {"Celu", "f31 -> f31", "alpha=0.4"},
    {"Softplus", "f41(-20..20) -> f41"},
    {"Softplus", "f41(-9..9) -> f41", "factor=2.5"},
    {"Softplus", "f41(-9..9) -> f41", "factor=-0.7"},
    {"Softsign", "f31 -> f31"},
    {"Gelu", "f41(-6..6) -> f41"},
    {"Gelu", "f41(-6..6) -> f41", "approximate='none'"},
    {"Gelu", "f41(-6..6) -> f41", "approximate='tanh'"},
    {"Swish@24", "f41(-6..6) -> f41"},
    {"Swish@24", "f41(-6..6) -> f41", "alpha=1.7"},
    {"Mish", "f41(-20..20) -> f41"},
    {"HardSwish", "f41(-6..6) -> f41"},
    {"HardSigmoid", "f41(-6..6) -> f41"},
    {"HardSigmoid", "f41(-6..6) -> f41", "alpha=0.166666 beta=0.4"},
    {"ThresholdedRelu", "f41 -> f41"},
    {"ThresholdedRelu", "f41 -> f41", "alpha=0.3"},
    {"Shrink", "f41 -> f41"},
    {"Shrink", "f41 -> f41", "bias=0.2 lambd=0.9"},
};

}  // namespace

std::span<const FunctionRow> ActivationReferences() { return kActivationReferences; }
std::span<const CaseRow> ActivationCases() { return kActivationCases; }

// Arithmetic of two operands.

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

// Clip and the casts between element types.

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
    {"Clip", "f31 fs*@[-1] fs*@[0.5] -> f31"},  // Unknown before the step.
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

// Comparisons, boolean and bitwise logic, and Where.

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

// Elementwise operators with any number of inputs.

namespace {

void MeanOfInputs(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  Fold<[](const OpSpec&, double a, double b) { return a + b; }>(spec, inputs, outputs);
  for (double& value : outputs[0].values) value /= static_cast<double>(inputs.size());
}

constexpr FunctionRow kNaryReferences[] = {
    {"Sum", CKPLAN_FOLD(a + b)},
    {"Mean", MeanOfInputs},
    {"Max", CKPLAN_FOLD(std::max(a, b))},
    {"Min", CKPLAN_FOLD(std::min(a, b))},
};

constexpr CaseRow kNaryCases[] = {
    {"Max", "f2x3 f2x3 -> f2x3"},
    {"Max", "f2x3 f3 -> f2x3"},
    {"Max", "f2x3 fs f2x1 -> f2x3"},
    {"Max", "f2x3 fs=[0] -> f2x3"},
    {"Max", "i2x3(-3..3) i3(-3..3) -> i2x3"},
    {"Min", "f2x3 f2x3 -> f2x3"},
    {"Min", "f2x1 f3 f2x3 -> f2x3"},
    {"Min", "n2x3(-3..3) n3(-3..3) -> n2x3"},
    {"Sum", "f2x3 f2x3 f3 -> f2x3"},
    {"Sum", "f2x3 f2x1 -> f2x3"},
    {"Sum", "f7 -> f7"},
    {"Mean", "f2x3 f2x3 f3 -> f2x3"},
};

}  // namespace

std::span<const FunctionRow> NaryReferences() { return kNaryReferences; }
std::span<const CaseRow> NaryCases() { return kNaryCases; }

// Functions of one number other than activations.

namespace {

double IsInfinite(const OpSpec& spec, double x) {
  if (!std::isinf(x)) return 0;
  return spec.Int(x < 0 ? "detect_negative" : "detect_positive", 1) != 0 ? 1 : 0;
}

constexpr FunctionRow kUnaryMathReferences[] = {
    {"Exp", CKPLAN_MAP(std::exp(x))},
    {"Sqrt", CKPLAN_MAP(std::sqrt(x))},
    {"Reciprocal", CKPLAN_MAP(1 / x)},
    {"Rsqrt", CKPLAN_MAP(1 / std::sqrt(x))},
    {"Tan", CKPLAN_MAP(std::tan(x))},
    {"Log", CKPLAN_MAP(std::log(x))},
    {"Abs", CKPLAN_MAP(std::abs(x))},
    {"Erf", CKPLAN_MAP(std::erf(x))},
    {"Sin", CKPLAN_MAP(std::sin(x))},
    {"Cos", CKPLAN_MAP(std::cos(x))},
    {"Asin", CKPLAN_MAP(std::asin(x))},
    {"Acos", CKPLAN_MAP(std::acos(x))},
    {"Atan", CKPLAN_MAP(std::atan(x))},
    {"Sinh", CKPLAN_MAP(std::sinh(x))},
    {"Cosh", CKPLAN_MAP(std::cosh(x))},
    {"Asinh", CKPLAN_MAP(std::asinh(x))},
    {"Acosh", CKPLAN_MAP(std::acosh(x))},
    {"Atanh", CKPLAN_MAP(std::atanh(x))},
    {"Neg", CKPLAN_MAP(-x)},
    {"Sign", CKPLAN_MAP(x > 0   ? 1
                        : x < 0 ? -1
                                : 0)},
    {"Floor", CKPLAN_MAP(std::floor(x))},
    {"Ceil", CKPLAN_MAP(std::ceil(x))},
    {"Round", CKPLAN_MAP(std::nearbyint(x))},  // Halves round to even.
    {"Not", CKPLAN_MAP(x == 0 ? 1 : 0)},
    {"IsNaN", CKPLAN_MAP(std::isnan(x) ? 1 : 0)},
    {"IsInf", Map<IsInfinite>},
};

constexpr CaseRow kUnaryMathCases[] = {
    {"Exp", "f31 -> f31"},
    {"Sqrt", "f31(0.1..4) -> f31"},
    {"Reciprocal", "f31(0.2..3) -> f31", "", 1e-4},
    {"Rsqrt", "f31(0.2..4) -> f31", "", 1e-4},
    {"Tan", "f31(-1..1) -> f31"},
    {"Log", "f31(0.1..4) -> f31"},
    {"Abs", "f31 -> f31"},
    {"Abs", "i5(-3..3) -> i5"},
    {"Abs", "n5(-3..3) -> n5"},
    {"Erf", "f31 -> f31"},
    {"Sin", "f31(-7..7) -> f31"},
    {"Cos", "f31(-7..7) -> f31"},
    {"Asin", "f31(-0.9..0.9) -> f31"},
    {"Acos", "f31(-0.9..0.9) -> f31"},
    {"Atan", "f31 -> f31"},
    {"Sinh", "f31 -> f31"},
    {"Cosh", "f31 -> f31"},
    {"Asinh", "f31 -> f31"},
    {"Acosh", "f31(1.1..4) -> f31"},
    {"Atanh", "f31(-0.9..0.9) -> f31"},
    {"Neg", "f31 -> f31"},
    {"Neg", "fs -> fs"},
    {"Neg", "i5(-3..3) -> i5"},
    {"Neg", "n5(-3..3) -> n5"},
    {"Sign", "f31 -> f31"},
    {"Sign", "i5(-3..3) -> i5"},
    {"Floor", "f31 -> f31"},
    {"Ceil", "f31 -> f31"},
    {"Round", "f7@[-2.5,-1.5,-0.5,0.5,1.5,2.5,2.6] -> f7"},
    {"Not", "b9 -> b9"},
    {"IsNaN", "f4@[0,nan,1,inf] -> b4"},
    {"IsInf", "f4@[-inf,nan,1,inf] -> b4"},
    {"IsInf", "f4@[-inf,nan,1,inf] -> b4", "detect_negative=0"},
    {"IsInf", "f4@[-inf,nan,1,inf] -> b4", "detect_positive=0"},
};

}  // namespace

std::span<const FunctionRow> UnaryMathReferences() { return kUnaryMathReferences; }
std::span<const CaseRow> UnaryMathCases() { return kUnaryMathCases; }

}  // namespace ckplan::reference
