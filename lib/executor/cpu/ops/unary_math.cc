// Elementwise functions of one input that are not activations.
#include "lib/executor/scalar/unary_math.h"

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/unary.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

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
  return MakeMap<uint8_t, uint8_t, scalar::Not>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareIsInf(const OpSpec& spec) {
  const bool negative = spec.Int("detect_negative", 1) != 0;
  const bool positive = spec.Int("detect_positive", 1) != 0;
  if (negative && positive) return PrepareFloatMap<scalar::IsInf, uint8_t>(spec);
  if (negative) return PrepareFloatMap<scalar::IsNegativeInf, uint8_t>(spec);
  if (positive) return PrepareFloatMap<scalar::IsPositiveInf, uint8_t>(spec);
  return PrepareFloatMap<scalar::Never, uint8_t>(spec);
}

constexpr OpRow kUnaryMathOps[] = {
    {"Exp", PrepareUnary<scalar::Exp<VectorMath>>},
    {"Sqrt", PrepareUnary<scalar::Sqrt>},
    {"Reciprocal", PrepareUnary<scalar::Reciprocal>},
    {"Tan", PrepareUnary<scalar::Tan>},
    {"Log", PrepareUnary<scalar::Log>},
    {"Abs", PrepareNumber<scalar::Magnitude, PrepareUnary<scalar::Abs>>},
    {"Erf", PrepareUnary<scalar::Erf<VectorMath>>},
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
    {"IsNaN", PrepareFloatMap<scalar::IsNan, uint8_t>},
    {"IsInf", PrepareIsInf},
};

}  // namespace

std::span<const OpRow> UnaryMathOps() { return kUnaryMathOps; }

}  // namespace ckplan::cpu
