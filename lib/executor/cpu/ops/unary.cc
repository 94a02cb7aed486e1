// Activation functions.
#include "lib/executor/scalar/unary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/executor/cpu/ops/elementwise.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

Result<std::unique_ptr<PreparedOp>> PrepareRelu(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt64) {
    return MakeMap<int64_t, int64_t, scalar::IntegerRelu>(spec);
  }
  if (spec.input(0).type == ElementType::kInt32) {
    return MakeMap<int32_t, int32_t, scalar::IntegerRelu>(spec);
  }
  return PrepareUnary<scalar::Relu>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareGelu(const OpSpec& spec) {
  if (spec.String("approximate", "none") == "tanh") {
    return PrepareUnary<scalar::GeluTanh<VectorMath>>(spec);
  }
  return PrepareUnary<scalar::GeluErf<VectorMath>>(spec);
}

constexpr OpRow kActivationOps[] = {
    {"Relu", PrepareRelu},
    {"LeakyRelu", PrepareUnary<scalar::LeakyRelu>},
    {"Sigmoid", PrepareUnary<scalar::Sigmoid<VectorMath>>},
    {"Tanh", PrepareUnary<scalar::Tanh<VectorMath>>},
    {"Elu", PrepareUnary<scalar::Elu>},
    {"Selu", PrepareUnary<scalar::Selu>},
    {"Celu", PrepareUnary<scalar::Celu>},
    {"Softplus", PrepareUnary<scalar::Softplus<VectorMath>>},
    {"Softsign", PrepareUnary<scalar::Softsign>},
    {"Gelu", PrepareGelu},
    {"Swish", PrepareUnary<scalar::Swish<VectorMath>>},
    {"Mish", PrepareUnary<scalar::Mish<VectorMath>>},
    {"HardSigmoid", PrepareUnary<scalar::HardSigmoid>},
    {"HardSwish", PrepareUnary<scalar::HardSwish>},
    {"ThresholdedRelu", PrepareUnary<scalar::ThresholdedRelu>},
    {"Shrink", PrepareUnary<scalar::Shrink>},
};

}  // namespace

std::span<const OpRow> ActivationOps() { return kActivationOps; }

// Elementwise functions of one input that are not activations.

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
    {"Rsqrt", PrepareUnary<scalar::Rsqrt>},
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

// Clip, whose limits may be inputs, and conversions of element types.

namespace {

template <typename T>
class ClipOp final : public PreparedOp {
 public:
  explicit ClipOp(const OpSpec& spec)
      : count_(spec.output(0).elements()),
        has_low_(spec.input(1).is_present),
        has_high_(spec.input(2).is_present) {
    if (spec.Has("min")) low_ = static_cast<T>(spec.Float("min", 0));
    if (spec.Has("max")) high_ = static_cast<T>(spec.Float("max", 0));
  }

  void Forward(const ForwardCall& call) override {
    const auto [low, high] = Limits(call.inputs);
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* y = static_cast<T*>(call.outputs[0]);
    ParallelFor(count_, kGrain, [x, y, low = low, high = high](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T above = x[i] < low ? low : x[i];
        y[i] = above > high ? high : above;
      }
    });
  }

  // Like PyTorch, passes the gradient of an input equal to a limit.
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto [low, high] = Limits(call.inputs);
    const auto* x = static_cast<const T*>(call.inputs[0]);
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    ParallelFor(count_, kGrain, [x, g, dx, low = low, high = high](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) dx[i] = x[i] >= low && x[i] <= high ? g[i] : 0.0F;
    });
  }

 private:
  std::pair<T, T> Limits(std::span<const void* const> inputs) const {
    return {has_low_ ? *static_cast<const T*>(inputs[1]) : low_,
            has_high_ ? *static_cast<const T*>(inputs[2]) : high_};
  }

  int64_t count_;
  bool has_low_, has_high_;
  T low_ = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  T high_ = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                 : std::numeric_limits<T>::max();
};

Result<std::unique_ptr<PreparedOp>> PrepareClip(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt32) return Prepared<ClipOp<int32_t>>(spec);
  if (spec.input(0).type == ElementType::kInt64) return Prepared<ClipOp<int64_t>>(spec);
  return Prepared<ClipOp<float>>(spec);
}

template <typename From>
std::unique_ptr<PreparedOp> MakeCast(const OpSpec& spec) {
  switch (spec.output(0).type) {
    case ElementType::kFloat32:
      return MakeMap<From, float, scalar::Convert<float>>(spec);
    case ElementType::kInt32:
      return MakeMap<From, int32_t, scalar::Convert<int32_t>>(spec);
    case ElementType::kInt64:
      return MakeMap<From, int64_t, scalar::Convert<int64_t>>(spec);
    case ElementType::kBool:
      return MakeMap<From, uint8_t, scalar::ToBool>(spec);
    case ElementType::kBFloat16:  // The backend has rejected bfloat16.
      break;
  }
  return nullptr;
}

Result<std::unique_ptr<PreparedOp>> PrepareCast(const OpSpec& spec) {
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
      if (spec.output(0).type == ElementType::kFloat32)
        return PrepareUnary<scalar::SameFloat>(spec);
      return MakeCast<float>(spec);
    case ElementType::kInt32:
      return MakeCast<int32_t>(spec);
    case ElementType::kInt64:
      return MakeCast<int64_t>(spec);
    case ElementType::kBool:
      return MakeCast<uint8_t>(spec);
    case ElementType::kBFloat16:  // The backend has rejected bfloat16.
      break;
  }
  return Unsupported(spec, "its input is bfloat16");
}

constexpr OpRow kClipCastOps[] = {
    {"Clip", PrepareClip},
    {"Cast", PrepareCast},
    {"CastLike", PrepareCast},
};

}  // namespace

std::span<const OpRow> ClipCastOps() { return kClipCastOps; }

}  // namespace ckplan::cpu
