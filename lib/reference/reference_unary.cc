// Elementwise operators of one input.
#include <cmath>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

// F: double(const OpSpec&, double x).

template <auto F>
void Map(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  for (int64_t i = 0; i < outputs[0].size(); ++i) outputs[0][i] = F(spec, inputs[0][i]);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

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
double IsInfinite(const OpSpec& spec, double x) {
  if (!std::isinf(x)) return 0;
  return spec.Int(x < 0 ? "detect_negative" : "detect_positive", 1) != 0 ? 1 : 0;
}

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

#define CKPLAN_SCALAR(expression) \
  Map<[](const OpSpec&, double x) -> double { return (expression); }>

constexpr FunctionRow kRows[] = {
    {"Relu", CKPLAN_SCALAR(std::max(x, 0.0))},
    {"LeakyRelu", Map<LeakyRelu>},
    {"Sigmoid", CKPLAN_SCALAR(Sigmoid(x))},
    {"Tanh", CKPLAN_SCALAR(std::tanh(x))},
    {"Elu", Map<Elu>},
    {"Selu", Map<Selu>},
    {"Celu", Map<Celu>},
    {"Exp", CKPLAN_SCALAR(std::exp(x))},
    {"Sqrt", CKPLAN_SCALAR(std::sqrt(x))},
    {"Reciprocal", CKPLAN_SCALAR(1 / x)},
    {"Tan", CKPLAN_SCALAR(std::tan(x))},
    {"Softplus", CKPLAN_SCALAR(Softplus(x))},
    {"Softsign", CKPLAN_SCALAR(x / (1 + std::abs(x)))},
    {"Gelu", Map<Gelu>},
    {"Swish", Map<Swish>},
    {"Mish", CKPLAN_SCALAR(x* std::tanh(Softplus(x)))},
    {"HardSwish", CKPLAN_SCALAR(x* std::max(0.0, std::min(1.0, x / 6 + 0.5)))},
    {"HardSigmoid", Map<HardSigmoid>},
    {"ThresholdedRelu", Map<ThresholdedRelu>},
    {"Shrink", Map<Shrink>},
    {"Log", CKPLAN_SCALAR(std::log(x))},
    {"Abs", CKPLAN_SCALAR(std::abs(x))},
    {"Clip", Clip},
    {"Erf", CKPLAN_SCALAR(std::erf(x))},
    {"Sin", CKPLAN_SCALAR(std::sin(x))},
    {"Cos", CKPLAN_SCALAR(std::cos(x))},
    {"Asin", CKPLAN_SCALAR(std::asin(x))},
    {"Acos", CKPLAN_SCALAR(std::acos(x))},
    {"Atan", CKPLAN_SCALAR(std::atan(x))},
    {"Sinh", CKPLAN_SCALAR(std::sinh(x))},
    {"Cosh", CKPLAN_SCALAR(std::cosh(x))},
    {"Asinh", CKPLAN_SCALAR(std::asinh(x))},
    {"Acosh", CKPLAN_SCALAR(std::acosh(x))},
    {"Atanh", CKPLAN_SCALAR(std::atanh(x))},
    {"Neg", CKPLAN_SCALAR(-x)},
    {"Sign", CKPLAN_SCALAR(x > 0   ? 1
                           : x < 0 ? -1
                                   : 0)},
    {"Floor", CKPLAN_SCALAR(std::floor(x))},
    {"Ceil", CKPLAN_SCALAR(std::ceil(x))},
    {"Round", CKPLAN_SCALAR(std::nearbyint(x))},  // Halves to even.
    {"Not", CKPLAN_SCALAR(x == 0 ? 1 : 0)},
    {"IsNaN", CKPLAN_SCALAR(std::isnan(x) ? 1 : 0)},
    {"IsInf", Map<IsInfinite>},
    {"Cast", Cast},
    {"CastLike", Cast},
};

#undef CKPLAN_SCALAR

}  // namespace

std::span<const FunctionRow> UnaryFunctions() { return kRows; }

}  // namespace ckplan::reference
