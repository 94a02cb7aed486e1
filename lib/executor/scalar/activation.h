// Activation functions. Where backward may read only the output, the slope is computed from the
// output.
#pragma once

#include <math.h>

#include <algorithm>
#include <string_view>

#include "lib/executor/scalar/unary.h"

namespace ckplan::scalar {

inline float Attribute(const OpSpec& spec, std::string_view name, double otherwise) {
  return static_cast<float>(spec.Float(name, otherwise));
}

struct Relu : PlainUnary<Reads::kOutput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return x < 0 ? 0 : x; }
  CKPLAN_DEVICE float Slope(float y) const { return y > 0 ? 1.0F : 0.0F; }
};

struct LeakyRelu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit LeakyRelu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 0.01)) {}
  CKPLAN_DEVICE float Value(float x) const { return x < 0 ? alpha * x : x; }
  CKPLAN_DEVICE float Slope(float y) const { return y > 0 ? 1.0F : alpha; }
  float alpha;
};

template <typename Math>
struct Sigmoid : PlainUnary<Reads::kOutput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return Math::Sigmoid(x); }
  CKPLAN_DEVICE float Slope(float y) const { return y * (1 - y); }
};

template <typename Math>
struct Tanh : PlainUnary<Reads::kOutput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return Math::Tanh(x); }
  CKPLAN_DEVICE float Slope(float y) const { return 1 - y * y; }
};

struct Elu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit Elu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  CKPLAN_DEVICE float Value(float x) const { return x < 0 ? alpha * expm1f(x) : x; }
  CKPLAN_DEVICE float Slope(float y) const { return y > 0 ? 1.0F : y + alpha; }
  float alpha;
};

struct Selu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit Selu(const OpSpec& spec)
      : gamma(Attribute(spec, "gamma", 1.0507009873554805)),
        scale(gamma * Attribute(spec, "alpha", 1.6732632423543772)) {}
  CKPLAN_DEVICE float Value(float x) const { return x < 0 ? scale * expm1f(x) : gamma * x; }
  CKPLAN_DEVICE float Slope(float y) const { return y > 0 ? gamma : y + scale; }
  float gamma, scale;
};

struct Celu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit Celu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  CKPLAN_DEVICE float Value(float x) const { return x < 0 ? alpha * expm1f(x / alpha) : x; }
  CKPLAN_DEVICE float Slope(float y) const { return y > 0 ? 1.0F : y / alpha + 1; }
  float alpha;
};

template <typename Math>
struct Softplus : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return Math::Softplus(x); }
  CKPLAN_DEVICE float Slope(float x) const { return Math::Sigmoid(x); }
};

struct Softsign : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return x / (1 + fabsf(x)); }
  CKPLAN_DEVICE float Slope(float x) const {
    const float d = 1 + fabsf(x);
    return 1 / (d * d);
  }
};

template <typename Math>
struct GeluErf : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE static float Phi(float x) {
    return 0.5F * (1 + Math::Erf(x * 0.70710678118654752F));
  }
  CKPLAN_DEVICE float Value(float x) const { return x * Phi(x); }
  CKPLAN_DEVICE float Slope(float x) const {
    return Phi(x) + x * Math::Exp(-0.5F * x * x) * 0.39894228040143268F;
  }
};

template <typename Math>
struct GeluTanh : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  static constexpr float kScale = 0.79788456080286536F;  // sqrt(2 / pi)
  CKPLAN_DEVICE static float Inner(float x) {
    return Math::Tanh(kScale * (x + 0.044715F * x * x * x));
  }
  CKPLAN_DEVICE float Value(float x) const { return 0.5F * x * (1 + Inner(x)); }
  CKPLAN_DEVICE float Slope(float x) const {
    const float t = Inner(x);
    const float inner_slope = kScale * (1 + 3 * 0.044715F * x * x);
    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * inner_slope;
  }
};

template <typename Math>
struct Swish {
  static constexpr Reads kReads = Reads::kInput;
  explicit Swish(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  CKPLAN_DEVICE float Value(float x) const { return x * Math::Sigmoid(alpha * x); }
  CKPLAN_DEVICE float Slope(float x) const {
    const float s = Math::Sigmoid(alpha * x);
    return s + alpha * x * s * (1 - s);
  }
  float alpha;
};

template <typename Math>
struct Mish : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return x * Math::Tanh(Math::Softplus(x)); }
  CKPLAN_DEVICE float Slope(float x) const {
    const float t = Math::Tanh(Math::Softplus(x));
    return t + x * (1 - t * t) * Math::Sigmoid(x);
  }
};

struct HardSigmoid {
  static constexpr Reads kReads = Reads::kInput;
  explicit HardSigmoid(const OpSpec& spec)
      : HardSigmoid(Attribute(spec, "alpha", 0.2), Attribute(spec, "beta", 0.5)) {}
  CKPLAN_DEVICE HardSigmoid(float slope, float offset) : alpha(slope), beta(offset) {}
  CKPLAN_DEVICE float Value(float x) const {
    return std::max(0.0F, std::min(1.0F, alpha * x + beta));
  }
  CKPLAN_DEVICE float Slope(float x) const {
    const float line = alpha * x + beta;
    return line > 0 && line < 1 ? alpha : 0.0F;
  }
  float alpha, beta;
};

struct HardSwish : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return x * HardSigmoid(1.0F / 6, 0.5F).Value(x); }
  CKPLAN_DEVICE float Slope(float x) const {
    const float inside = x / 3 + 0.5F;
    return x <= -3 ? 0.0F : x >= 3 ? 1.0F : inside;
  }
};

struct ThresholdedRelu {
  static constexpr Reads kReads = Reads::kInput;
  explicit ThresholdedRelu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  CKPLAN_DEVICE float Value(float x) const { return x > alpha ? x : 0; }
  CKPLAN_DEVICE float Slope(float x) const { return x > alpha ? 1.0F : 0.0F; }
  float alpha;
};

struct Shrink {
  static constexpr Reads kReads = Reads::kInput;
  explicit Shrink(const OpSpec& spec)
      : lambda(Attribute(spec, "lambd", 0.5)), bias(Attribute(spec, "bias", 0.0)) {}
  CKPLAN_DEVICE float Value(float x) const {
    return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
  }
  CKPLAN_DEVICE float Slope(float x) const { return x < -lambda || x > lambda ? 1.0F : 0.0F; }
  float lambda, bias;
};

struct IntegerRelu {
  template <typename T>
  CKPLAN_DEVICE static T Value(T x) {
    return x < 0 ? 0 : x;
  }
};

}  // namespace ckplan::scalar
