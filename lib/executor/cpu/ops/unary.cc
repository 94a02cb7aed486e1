// Functions of one number: activations and mathematics, limits and conversions.
#include "lib/executor/scalar/unary.h"

#include <limits>

#include "lib/executor/cpu/ops/elementwise.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

// The kernels of scalar/unary.h.
template <typename I, typename F>
Result<std::unique_ptr<PreparedOp>> PrepareNumber(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt64) return Prepared<MapOp<int64_t, int64_t, I>>(spec);
  if (spec.input(0).type == ElementType::kInt32) return Prepared<MapOp<int32_t, int32_t, I>>(spec);
  return PrepareUnary<F>(spec);
}

template <typename From, typename To, typename F>
Result<std::unique_ptr<PreparedOp>> PrepareMap(const OpSpec& spec) {
  return Prepared<MapOp<From, To, F>>(spec);
}

struct UnaryKernels {
  using Row = OpRow;
  using Prepare = PrepareFunction;
  using Math = VectorMath;
  template <typename F>
  static constexpr Prepare kUnary = PrepareUnary<F>;
  template <typename I, typename F>
  static constexpr Prepare kNumber = PrepareNumber<I, F>;
  template <typename F>
  static constexpr Prepare kTest = PrepareMap<float, uint8_t, F>;
  static constexpr Prepare kNot = PrepareMap<uint8_t, uint8_t, scalar::Not>;
  static Result<std::unique_ptr<PreparedOp>> Gelu(const OpSpec& spec) {
    return scalar::PrepareGelu<UnaryKernels>(spec);
  }
  static Result<std::unique_ptr<PreparedOp>> IsInf(const OpSpec& spec) {
    return scalar::PrepareIsInf<UnaryKernels>(spec);
  }
};

}  // namespace

std::span<const OpRow> ActivationOps() { return scalar::kActivations<UnaryKernels>; }

std::span<const OpRow> UnaryMathOps() { return scalar::kUnaryMath<UnaryKernels>; }

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
Result<std::unique_ptr<PreparedOp>> PrepareCastOf(const OpSpec& spec) {
  switch (spec.output(0).type) {
    case ElementType::kFloat32:
      return Prepared<MapOp<From, float, scalar::Convert<float>>>(spec);
    case ElementType::kInt32:
      return Prepared<MapOp<From, int32_t, scalar::Convert<int32_t>>>(spec);
    case ElementType::kInt64:
      return Prepared<MapOp<From, int64_t, scalar::Convert<int64_t>>>(spec);
    case ElementType::kBool:
      return Prepared<MapOp<From, uint8_t, scalar::ToBool>>(spec);
    case ElementType::kBFloat16:  // The backend has rejected bfloat16.
      break;
  }
  return Unsupported(spec, "its output is bfloat16");
}

Result<std::unique_ptr<PreparedOp>> PrepareCast(const OpSpec& spec) {
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
      if (spec.output(0).type == ElementType::kFloat32)
        return PrepareUnary<scalar::SameFloat>(spec);
      return PrepareCastOf<float>(spec);
    case ElementType::kInt32:
      return PrepareCastOf<int32_t>(spec);
    case ElementType::kInt64:
      return PrepareCastOf<int64_t>(spec);
    case ElementType::kBool:
      return PrepareCastOf<uint8_t>(spec);
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
