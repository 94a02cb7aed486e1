// Elementwise functions of one input that are not activations.
#include <cmath>

#include "lib/cpu/families.h"
#include "lib/cpu/ops/unary.h"
#include "lib/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

#define CKPLAN_UNARY(Name, reads, value, slope)                     \
  struct Name : PlainUnary<Reads::reads> {                          \
    using PlainUnary::PlainUnary;                                   \
    float Value(float x) const { return (value); }                  \
    float Slope([[maybe_unused]] float v) const { return (slope); } \
  }

// The variable v is x or y, as the second argument says.
CKPLAN_UNARY(ExpOp, kOutput, Exp(x), v);
CKPLAN_UNARY(Sqrt, kOutput, std::sqrt(x), 0.5F / v);
CKPLAN_UNARY(Reciprocal, kOutput, 1 / x, -v* v);
CKPLAN_UNARY(Tan, kOutput, std::tan(x), 1 + v * v);
CKPLAN_UNARY(Log, kInput, std::log(x), 1 / v);
CKPLAN_UNARY(Abs, kInput, std::abs(x), v > 0 ? 1.0F : v < 0 ? -1.0F : 0.0F);
CKPLAN_UNARY(ErfOp, kInput, Erf(x), 1.1283791670955126F * Exp(-v * v));
CKPLAN_UNARY(Sin, kInput, std::sin(x), std::cos(v));
CKPLAN_UNARY(Cos, kInput, std::cos(x), -std::sin(v));
CKPLAN_UNARY(Asin, kInput, std::asin(x), 1 / std::sqrt(1 - v * v));
CKPLAN_UNARY(Acos, kInput, std::acos(x), -1 / std::sqrt(1 - v * v));
CKPLAN_UNARY(Atan, kInput, std::atan(x), 1 / (1 + v * v));
CKPLAN_UNARY(Sinh, kInput, std::sinh(x), std::cosh(v));
CKPLAN_UNARY(Cosh, kInput, std::cosh(x), std::sinh(v));
CKPLAN_UNARY(Asinh, kInput, std::asinh(x), 1 / std::sqrt(v * v + 1));
CKPLAN_UNARY(Acosh, kInput, std::acosh(x), 1 / std::sqrt(v * v - 1));
CKPLAN_UNARY(Atanh, kInput, std::atanh(x), 1 / (1 - v * v));
CKPLAN_UNARY(Neg, kNothing, -x, -1.0F);

#undef CKPLAN_UNARY

#define CKPLAN_MAP(Name, value) \
  struct Name {                 \
    template <typename T>       \
    static auto Value(T x) {    \
      return (value);           \
    }                           \
  }

CKPLAN_MAP(Negation, static_cast<T>(-x));
CKPLAN_MAP(Magnitude, static_cast<T>(x < 0 ? -x : x));
CKPLAN_MAP(Sign, static_cast<T>((x > 0) - (x < 0)));
CKPLAN_MAP(Floor, std::floor(x));
CKPLAN_MAP(Ceil, std::ceil(x));
CKPLAN_MAP(Round, std::nearbyint(x));  // Rounds halves to even, as ONNX requires.
CKPLAN_MAP(Not, x == 0);
CKPLAN_MAP(IsNan, x != x);
CKPLAN_MAP(IsInf, std::isinf(x));
CKPLAN_MAP(IsPositiveInf, x == HUGE_VALF);
CKPLAN_MAP(IsNegativeInf, x == -HUGE_VALF);
CKPLAN_MAP(Never, x != x && x == x);

#undef CKPLAN_MAP

// Returns null if the input is a float tensor.
template <typename F>
std::unique_ptr<PreparedOp> MakeIntegerMap(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt64) return MakeMap<int64_t, int64_t, F>(spec);
  if (spec.input(0).type == ElementType::kInt32) return MakeMap<int32_t, int32_t, F>(spec);
  return nullptr;
}

template <typename F, PrepareFunction prepare_float>
Result<std::unique_ptr<PreparedOp>> PrepareNumber(const OpSpec& spec) {
  if (auto op = MakeIntegerMap<F>(spec); op != nullptr) return op;
  return prepare_float(spec);
}

template <typename F, typename To>
Result<std::unique_ptr<PreparedOp>> PrepareFloatMap(const OpSpec& spec) {
  return MakeMap<float, To, F>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareNot(const OpSpec& spec) {
  return MakeMap<uint8_t, uint8_t, Not>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareIsInf(const OpSpec& spec) {
  const bool negative = spec.Int("detect_negative", 1) != 0;
  const bool positive = spec.Int("detect_positive", 1) != 0;
  if (negative && positive) return PrepareFloatMap<IsInf, uint8_t>(spec);
  if (negative) return PrepareFloatMap<IsNegativeInf, uint8_t>(spec);
  if (positive) return PrepareFloatMap<IsPositiveInf, uint8_t>(spec);
  return PrepareFloatMap<Never, uint8_t>(spec);
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
    {"Sign", PrepareNumber<Sign, PrepareFloatMap<Sign, float>>},
    {"Floor", PrepareFloatMap<Floor, float>},
    {"Ceil", PrepareFloatMap<Ceil, float>},
    {"Round", PrepareFloatMap<Round, float>},
    {"Not", PrepareNot},
    {"IsNaN", PrepareFloatMap<IsNan, uint8_t>},
    {"IsInf", PrepareIsInf},
};

}  // namespace

std::span<const OpRow> UnaryMathOps() { return kUnaryMathOps; }

}  // namespace ckplan::cpu
