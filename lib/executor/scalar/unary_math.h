// Elementwise functions of one input that are not activations.
#pragma once

#include <math.h>

#include "lib/executor/scalar/unary.h"

namespace ckplan::scalar {

#define CKPLAN_UNARY(Name, reads, value, slope)                                   \
  struct Name : PlainUnary<Reads::reads> {                                        \
    using PlainUnary::PlainUnary;                                                 \
    CKPLAN_DEVICE float Value(float x) const { return (value); }                  \
    CKPLAN_DEVICE float Slope([[maybe_unused]] float v) const { return (slope); } \
  }

// The variable v is x or y, as the second argument says.
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

// A function that rounds, with the gradient of straight-through estimation: that of its result.
template <typename F>
struct StraightThrough : PlainUnary<Reads::kNothing> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return static_cast<float>(F::Value(x)); }
  CKPLAN_DEVICE float Slope(float) const { return 1; }
};

}  // namespace ckplan::scalar
