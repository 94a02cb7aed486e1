// Activation functions.
#include <algorithm>
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/scalar_map.h"

namespace ckplan::reference {

namespace {

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

constexpr FunctionRow kActivationReferences[] = {
    {"Relu", CKPLAN_MAP(std::max(x, 0.0))},
    {"LeakyRelu", Map<LeakyRelu>},
    {"Sigmoid", CKPLAN_MAP(Sigmoid(x))},
    {"Tanh", CKPLAN_MAP(std::tanh(x))},
    {"Elu", Map<Elu>},
    {"Selu", Map<Selu>},
    {"Celu", Map<Celu>},
    {"Softplus", CKPLAN_MAP(Softplus(x))},
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
    {"Relu", "f40007 -> f40007"},  // More than one thread's part, and not a multiple of it.
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

}  // namespace ckplan::reference
