// Elementwise functions of one input that are not activations.
#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/ops/unary.h"
#include "lib/executor/cuda/scalar_math.h"
#include "lib/executor/scalar/unary_math.h"

namespace ckplan::cuda {

namespace {

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

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareTest(const OpSpec& spec, Device& device) {
  return Prepared<FloatMapOp<uint8_t, F>>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareNot(const OpSpec& spec, Device& device) {
  return Prepared<MapOp<uint8_t, uint8_t, scalar::Not>>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareIsInf(const OpSpec& spec, Device& device) {
  const bool negative = spec.Int("detect_negative", 1) != 0;
  const bool positive = spec.Int("detect_positive", 1) != 0;
  if (negative && positive) return PrepareTest<scalar::IsInf>(spec, device);
  if (negative) return PrepareTest<scalar::IsNegativeInf>(spec, device);
  if (positive) return PrepareTest<scalar::IsPositiveInf>(spec, device);
  return PrepareTest<scalar::Never>(spec, device);
}

constexpr OpRow kUnaryMathOps[] = {
    {"Exp", PrepareUnary<scalar::Exp<DeviceMath>>},
    {"Sqrt", PrepareUnary<scalar::Sqrt>},
    {"Reciprocal", PrepareUnary<scalar::Reciprocal>},
    {"Tan", PrepareUnary<scalar::Tan>},
    {"Log", PrepareUnary<scalar::Log>},
    {"Abs", PrepareNumber<scalar::Magnitude, PrepareUnary<scalar::Abs>>},
    {"Erf", PrepareUnary<scalar::Erf<DeviceMath>>},
    {"Sin", PrepareUnary<scalar::Sin>},
    {"Cos", PrepareUnary<scalar::Cos>},
    {"Asin", PrepareUnary<scalar::Asin>},
    {"Acos", PrepareUnary<scalar::Acos>},
    {"Atan", PrepareUnary<scalar::Atan>},
    {"Sinh", PrepareUnary<scalar::Sinh>},
    {"Cosh", PrepareUnary<scalar::Cosh>},
    {"Asinh", PrepareUnary<scalar::Asinh>},
    {"Acosh", PrepareUnary<scalar::Acosh>},
    {"Atanh", PrepareUnary<scalar::Atanh>},
    {"Neg", PrepareNumber<scalar::Negation, PrepareUnary<scalar::Neg>>},
    {"Sign", PrepareNumber<scalar::Sign, PrepareUnary<scalar::StraightThrough<scalar::Sign>>>},
    {"Floor", PrepareUnary<scalar::StraightThrough<scalar::Floor>>},
    {"Ceil", PrepareUnary<scalar::StraightThrough<scalar::Ceil>>},
    {"Round", PrepareUnary<scalar::StraightThrough<scalar::Round>>},
    {"Not", PrepareNot},
    {"IsNaN", PrepareTest<scalar::IsNan>},
    {"IsInf", PrepareIsInf},
};

}  // namespace

std::span<const OpRow> UnaryMathOps() { return kUnaryMathOps; }

}  // namespace ckplan::cuda
