// Functions of one number that all backends share: activations, mathematics and casts.
#pragma once

#include <math.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "lib/executor/scalar/integers.h"
#include "lib/problem/ops/elementwise.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::scalar {

// All backends' kernels take an elementwise function of one input as a struct, such as
//
//   struct LeakyRelu {
//     static constexpr Reads kReads = Reads::kOutput;   what the slope is computed from
//     explicit LeakyRelu(const OpSpec& spec);           reads the attributes
//     CKPLAN_DEVICE float Value(float x) const;
//     CKPLAN_DEVICE float Slope(float y) const;         dy/dx, from x or y as kReads says
//   };
//
// Backends compute exponentials and related functions in different ways. A struct that needs them
// takes them as the parameter Math, with the static functions Exp, Tanh, Erf, Sigmoid and Softplus.
// All other functions come from the C library in their float versions, which all compilers provide.
// Limits use std::min and std::max, because fminf and fmaxf keep host compilers from vectorizing.
enum class Reads { kNothing, kInput, kOutput };

// An operator without attributes.
template <Reads reads>
struct PlainUnary {
  static constexpr Reads kReads = reads;
  PlainUnary() = default;
  explicit PlainUnary(const OpSpec&) {}
};

// Elementwise functions of one input that are not activations.

#define CKPLAN_UNARY(Name, reads, value, slope)                                   \
  struct Name : PlainUnary<Reads::reads> {                                        \
    using PlainUnary::PlainUnary;                                                 \
    CKPLAN_DEVICE float Value(float x) const { return (value); }                  \
    CKPLAN_DEVICE float Slope([[maybe_unused]] float v) const { return (slope); } \
  }

// The variable v is x or y, depending on the second argument.
CKPLAN_UNARY(Sqrt, kOutput, sqrtf(x), 0.5F / v);
CKPLAN_UNARY(Reciprocal, kOutput, 1 / x, -v* v);
CKPLAN_UNARY(Tan, kOutput, tanf(x), 1 + v * v);
CKPLAN_UNARY(Log, kInput, logf(x), 1 / v);
CKPLAN_UNARY(Abs, kInput, fabsf(x), v > 0 ? 1.0F : v < 0 ? -1.0F : 0.0F);
CKPLAN_UNARY(Sin, kInput, sinf(x), cosf(v));
CKPLAN_UNARY(Cos, kInput, cosf(x), -sinf(v));
CKPLAN_UNARY(Asin, kInput, asinf(x), 1 / sqrtf(1 - v * v));
CKPLAN_UNARY(Acos, kInput, acosf(x), -1 / sqrtf(1 - v * v));
CKPLAN_UNARY(Atan, kInput, atanf(x), 1 / (1 + v * v));
CKPLAN_UNARY(Sinh, kInput, sinhf(x), coshf(v));
CKPLAN_UNARY(Cosh, kInput, coshf(x), sinhf(v));
CKPLAN_UNARY(Asinh, kInput, asinhf(x), 1 / sqrtf(v * v + 1));
CKPLAN_UNARY(Acosh, kInput, acoshf(x), 1 / sqrtf(v * v - 1));
CKPLAN_UNARY(Atanh, kInput, atanhf(x), 1 / (1 - v * v));
CKPLAN_UNARY(Neg, kNothing, -x, -1.0F);

template <typename Math>
CKPLAN_UNARY(Exp, kOutput, Math::Exp(x), v);
template <typename Math>
CKPLAN_UNARY(Erf, kInput, Math::Erf(x), 1.1283791670955126F * Math::Exp(-v * v));

#undef CKPLAN_UNARY

// Functions for any element type, without a gradient.
#define CKPLAN_MAP(Name, value)            \
  struct Name {                            \
    template <typename T>                  \
    CKPLAN_DEVICE static auto Value(T x) { \
      return (value);                      \
    }                                      \
  }

CKPLAN_MAP(Negation, static_cast<T>(-x));
CKPLAN_MAP(Magnitude, static_cast<T>(x < 0 ? -x : x));
CKPLAN_MAP(Sign, static_cast<T>((x > 0) - (x < 0)));
CKPLAN_MAP(Floor, floorf(x));
CKPLAN_MAP(Ceil, ceilf(x));
CKPLAN_MAP(Round, nearbyintf(x));  // Rounds halves to even, as ONNX requires.
CKPLAN_MAP(Not, x == 0);
CKPLAN_MAP(IsNan, x != x);
CKPLAN_MAP(IsInf, fabsf(x) == HUGE_VALF);
CKPLAN_MAP(IsPositiveInf, x == HUGE_VALF);
CKPLAN_MAP(IsNegativeInf, x == -HUGE_VALF);
CKPLAN_MAP(Never, x != x && x == x);

#undef CKPLAN_MAP

// A rounding function with a straight-through gradient: its input's gradient is its output's.
template <typename F>
struct StraightThrough : PlainUnary<Reads::kNothing> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return static_cast<float>(F::Value(x)); }
  CKPLAN_DEVICE float Slope(float) const { return 1; }
};

// Activation functions. Where backward may read only the output, the slope is computed from it.
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
struct Softplus {
  static constexpr Reads kReads = Reads::kInput;
  explicit Softplus(const OpSpec& spec) : factor(Attribute(spec, kFactorAttribute, 1.0)) {}
  CKPLAN_DEVICE float Value(float x) const { return Math::Softplus(factor * x) / factor; }
  CKPLAN_DEVICE float Slope(float x) const { return Math::Sigmoid(factor * x); }
  float factor;
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

// Conversions between element types.

// Conversion to an integer truncates. NaN and values out of range become 0, since both C++ and ONNX
// leave them undefined.
template <typename To>
struct Convert {
  template <typename From>
  CKPLAN_DEVICE static To Value(From x) {
    if constexpr (std::is_same_v<From, float> && !std::is_same_v<To, float>) {
      constexpr auto kLimit = static_cast<float>(std::numeric_limits<To>::max());
      return x > -kLimit && x < kLimit ? static_cast<To>(x) : To{0};
    } else {
      return static_cast<To>(x);
    }
  }
};

struct ToBool {
  template <typename From>
  CKPLAN_DEVICE static uint8_t Value(From x) {
    return x != From{0} ? 1 : 0;
  }
};

// Conversion between float types. The gradient passes through unchanged.
struct SameFloat : PlainUnary<Reads::kNothing> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return x; }
  CKPLAN_DEVICE float Slope(float) const { return 1; }
};

// The rows of a backend's table for operators with one operand. The backend is described by K:
//
//   Row, Math             a row of its table; its exponentials and related functions
//   Prepare               the type of functions that prepare an operator
//   kUnary<F>             prepares F for floats
//   kNumber<I, F>         prepares F for floats and I for integers
//   kTest<F>, kNot        prepare a test of floats, and the negation of a boolean
//   Gelu, IsInf           call PrepareGelu<K> and PrepareIsInf<K>, which choose by an attribute
template <typename K, typename... Device>
auto PrepareGelu(const OpSpec& spec, Device&... device) {
  using Math = typename K::Math;
  const typename K::Prepare prepare = spec.String("approximate", "none") == "tanh"
                                          ? K::template kUnary<GeluTanh<Math>>
                                          : K::template kUnary<GeluErf<Math>>;
  return prepare(spec, device...);
}

template <typename K, typename... Device>
auto PrepareIsInf(const OpSpec& spec, Device&... device) {
  const bool negative = spec.Int("detect_negative", 1) != 0;
  const bool positive = spec.Int("detect_positive", 1) != 0;
  typename K::Prepare prepare = K::template kTest<Never>;
  if (negative && positive) prepare = K::template kTest<IsInf>;
  if (negative && !positive) prepare = K::template kTest<IsNegativeInf>;
  if (positive && !negative) prepare = K::template kTest<IsPositiveInf>;
  return prepare(spec, device...);
}

template <typename K>
inline constexpr typename K::Row kActivations[] = {
    {"Relu", K::template kNumber<IntegerRelu, Relu>},
    {"LeakyRelu", K::template kUnary<LeakyRelu>},
    {"Sigmoid", K::template kUnary<Sigmoid<typename K::Math>>},
    {"Tanh", K::template kUnary<Tanh<typename K::Math>>},
    {"Elu", K::template kUnary<Elu>},
    {"Selu", K::template kUnary<Selu>},
    {"Celu", K::template kUnary<Celu>},
    {"Softplus", K::template kUnary<Softplus<typename K::Math>>},
    {"Softsign", K::template kUnary<Softsign>},
    {"Gelu", K::Gelu},
    {"Swish", K::template kUnary<Swish<typename K::Math>>},
    {"Mish", K::template kUnary<Mish<typename K::Math>>},
    {"HardSigmoid", K::template kUnary<HardSigmoid>},
    {"HardSwish", K::template kUnary<HardSwish>},
    {"ThresholdedRelu", K::template kUnary<ThresholdedRelu>},
    {"Shrink", K::template kUnary<Shrink>},
};

template <typename K>
inline constexpr typename K::Row kUnaryMath[] = {
    {"Exp", K::template kUnary<Exp<typename K::Math>>},
    {"Sqrt", K::template kUnary<Sqrt>},
    {"Reciprocal", K::template kUnary<Reciprocal>},
    {"Tan", K::template kUnary<Tan>},
    {"Log", K::template kUnary<Log>},
    {"Abs", K::template kNumber<Magnitude, Abs>},
    {"Erf", K::template kUnary<Erf<typename K::Math>>},
    {"Sin", K::template kUnary<Sin>},
    {"Cos", K::template kUnary<Cos>},
    {"Asin", K::template kUnary<Asin>},
    {"Acos", K::template kUnary<Acos>},
    {"Atan", K::template kUnary<Atan>},
    {"Sinh", K::template kUnary<Sinh>},
    {"Cosh", K::template kUnary<Cosh>},
    {"Asinh", K::template kUnary<Asinh>},
    {"Acosh", K::template kUnary<Acosh>},
    {"Atanh", K::template kUnary<Atanh>},
    {"Neg", K::template kNumber<Negation, Neg>},
    {"Sign", K::template kNumber<Sign, StraightThrough<Sign>>},
    {"Floor", K::template kUnary<StraightThrough<Floor>>},
    {"Ceil", K::template kUnary<StraightThrough<Ceil>>},
    {"Round", K::template kUnary<StraightThrough<Round>>},
    {"Not", K::kNot},
    {"IsNaN", K::template kTest<IsNan>},
    {"IsInf", K::IsInf},
};

}  // namespace ckplan::scalar
