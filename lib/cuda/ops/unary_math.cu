// Elementwise functions of one input that are not activations.
#include "lib/cuda/families.h"
#include "lib/cuda/ops/unary.h"
#include "lib/cuda/scalar_math.h"

namespace ckplan::cuda {

namespace {

#define CKPLAN_UNARY(Name, reads, value, slope)                                   \
  struct Name : PlainUnary<Reads::reads> {                                        \
    using PlainUnary::PlainUnary;                                                 \
    CKPLAN_DEVICE float Value(float x) const { return (value); }                  \
    CKPLAN_DEVICE float Slope([[maybe_unused]] float v) const { return (slope); } \
  }

// The variable v is x or y, as the second argument says.
CKPLAN_UNARY(ExpOp, kOutput, Exp(x), v);
CKPLAN_UNARY(Sqrt, kOutput, sqrtf(x), 0.5F / v);
CKPLAN_UNARY(Reciprocal, kOutput, 1 / x, -v* v);
CKPLAN_UNARY(Tan, kOutput, tanf(x), 1 + v * v);
CKPLAN_UNARY(Log, kInput, logf(x), 1 / v);
CKPLAN_UNARY(Abs, kInput, fabsf(x), v > 0 ? 1.0F : v < 0 ? -1.0F : 0.0F);
CKPLAN_UNARY(ErfOp, kInput, Erf(x), 1.1283791670955126F * Exp(-v * v));
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

#undef CKPLAN_UNARY

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
CKPLAN_MAP(IsInf, x == HUGE_VALF || x == -HUGE_VALF);
CKPLAN_MAP(IsPositiveInf, x == HUGE_VALF);
CKPLAN_MAP(IsNegativeInf, x == -HUGE_VALF);
CKPLAN_MAP(Never, x != x && x == x);

#undef CKPLAN_MAP

// Prepares F for the integer type of the input; float inputs use `prepare_float`.
template <typename F, PrepareFunction prepare_float>
Result<std::unique_ptr<PreparedOp>> PrepareNumber(const OpSpec& spec, Device& device) {
  switch (spec.input(0).type) {
    case ElementType::kInt64:
      return Prepared<MapOp<int64_t, int64_t, F>>(spec, device);
    case ElementType::kInt32:
      return Prepared<MapOp<int32_t, int32_t, F>>(spec, device);
    default:
      return prepare_float(spec, device);
  }
}

// Operators from floats to floats, without a gradient.
template <typename F>
struct Plain : PlainUnary<Reads::kNothing> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return static_cast<float>(F::Value(x)); }
  CKPLAN_DEVICE float Slope(float) const { return 0; }
};

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareTest(const OpSpec& spec, Device& device) {
  return Prepared<FloatMapOp<uint8_t, F>>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareNot(const OpSpec& spec, Device& device) {
  return Prepared<MapOp<uint8_t, uint8_t, Not>>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareIsInf(const OpSpec& spec, Device& device) {
  const bool negative = spec.Int("detect_negative", 1) != 0;
  const bool positive = spec.Int("detect_positive", 1) != 0;
  if (negative && positive) return PrepareTest<IsInf>(spec, device);
  if (negative) return PrepareTest<IsNegativeInf>(spec, device);
  if (positive) return PrepareTest<IsPositiveInf>(spec, device);
  return PrepareTest<Never>(spec, device);
}

constexpr OpRow kUnaryMathOps[] = {
    {"Exp", PrepareUnary<ExpOp>},
    {"Sqrt", PrepareUnary<Sqrt>},
    {"Reciprocal", PrepareUnary<Reciprocal>},
    {"Tan", PrepareUnary<Tan>},
    {"Log", PrepareUnary<Log>},
    {"Abs", PrepareNumber<Magnitude, PrepareUnary<Abs>>},
    {"Erf", PrepareUnary<ErfOp>},
    {"Sin", PrepareUnary<Sin>},
    {"Cos", PrepareUnary<Cos>},
    {"Asin", PrepareUnary<Asin>},
    {"Acos", PrepareUnary<Acos>},
    {"Atan", PrepareUnary<Atan>},
    {"Sinh", PrepareUnary<Sinh>},
    {"Cosh", PrepareUnary<Cosh>},
    {"Asinh", PrepareUnary<Asinh>},
    {"Acosh", PrepareUnary<Acosh>},
    {"Atanh", PrepareUnary<Atanh>},
    {"Neg", PrepareNumber<Negation, PrepareUnary<Neg>>},
    {"Sign", PrepareNumber<Sign, PrepareUnary<Plain<Sign>>>},
    {"Floor", PrepareUnary<Plain<Floor>>},
    {"Ceil", PrepareUnary<Plain<Ceil>>},
    {"Round", PrepareUnary<Plain<Round>>},
    {"Not", PrepareNot},
    {"IsNaN", PrepareTest<IsNan>},
    {"IsInf", PrepareIsInf},
};

}  // namespace

std::span<const OpRow> UnaryMathOps() { return kUnaryMathOps; }

}  // namespace ckplan::cuda
