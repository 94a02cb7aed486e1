// Functions of one number: activations and mathematics, limits and conversions.
#include <limits>

#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/ops/elementwise.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/unary.h"

namespace ckplan::cuda {

namespace {

// The kernels of scalar/unary.h.
template <typename I, typename F>
Result<std::unique_ptr<PreparedOp>> PrepareNumber(const OpSpec& spec, Device& device) {
  switch (spec.input(0).type) {
    case ElementType::kInt64:
      return Prepared<MapOp<int64_t, int64_t, I>>(spec, device);
    case ElementType::kInt32:
      return Prepared<MapOp<int32_t, int32_t, I>>(spec, device);
    default:
      return PrepareUnary<F>(spec, device);
  }
}

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareTest(const OpSpec& spec, Device& device) {
  return Prepared<FloatMapOp<uint8_t, F>>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareNot(const OpSpec& spec, Device& device) {
  return Prepared<MapOp<uint8_t, uint8_t, scalar::Not>>(spec, device);
}

struct UnaryKernels {
  using Row = OpRow;
  using Prepare = PrepareFunction;
  using Math = DeviceMath;
  template <typename F>
  static constexpr Prepare kUnary = PrepareUnary<F>;
  template <typename I, typename F>
  static constexpr Prepare kNumber = PrepareNumber<I, F>;
  template <typename F>
  static constexpr Prepare kTest = PrepareTest<F>;
  static constexpr Prepare kNot = PrepareNot;
  static Result<std::unique_ptr<PreparedOp>> Gelu(const OpSpec& spec, Device& device) {
    return scalar::PrepareGelu<UnaryKernels>(spec, device);
  }
  static Result<std::unique_ptr<PreparedOp>> IsInf(const OpSpec& spec, Device& device) {
    return scalar::PrepareIsInf<UnaryKernels>(spec, device);
  }
};

}  // namespace

std::span<const OpRow> ActivationOps() { return scalar::kActivations<UnaryKernels>; }

std::span<const OpRow> UnaryMathOps() { return scalar::kUnaryMath<UnaryKernels>; }

// Clip, whose limits may be inputs, and conversions between element types.

namespace {

// The kernel reads the limits, because they may be computed during the step.
template <typename T, typename In>
struct Limits {
  In low_at, high_at;
  bool has_low_input, has_high_input;
  T low, high;
  CKPLAN_DEVICE T Low() const { return has_low_input ? low_at[0] : low; }
  CKPLAN_DEVICE T High() const { return has_high_input ? high_at[0] : high; }
  CKPLAN_DEVICE T Clip(T x) const {
    const T lower = Low();
    const T upper = High();
    const T above = x < lower ? lower : x;
    return above > upper ? upper : above;
  }
};

// A conversion without limits.
template <typename T, typename In>
Limits<T, In> AttributeLimits(const OpSpec& spec) {
  using Range = std::numeric_limits<T>;
  Limits<T, In> limits{};
  limits.has_low_input = spec.input(1).is_present;
  limits.has_high_input = spec.input(2).is_present;
  limits.low = Range::has_infinity ? -Range::infinity() : Range::lowest();
  limits.high = Range::has_infinity ? Range::infinity() : Range::max();
  if (spec.Has("min")) limits.low = static_cast<T>(spec.Float("min", 0));
  if (spec.Has("max")) limits.high = static_cast<T>(spec.Float("max", 0));
  return limits;
}

using FloatLimits = Limits<float, FloatsIn>;

struct ClipValue {
  FloatLimits limits;
  CKPLAN_DEVICE float operator()(float x) const { return limits.Clip(x); }
};
// Like PyTorch, passes the gradient of an input equal to a limit.
struct ClipSlope {
  FloatLimits limits;
  CKPLAN_DEVICE float operator()(float g, float x) const {
    return x >= limits.Low() && x <= limits.High() ? g : 0.0F;
  }
};

class ClipOp final : public PreparedOp {
 public:
  ClipOp(const OpSpec& spec, Device& device)
      : device_(device),
        count_(spec.output(0).elements()),
        types_{spec.input(0).type, spec.input(1).type, spec.input(2).type},
        y_type_(spec.output(0).type),
        limits_(AttributeLimits<float, FloatsIn>(spec)) {}

  void Forward(const ForwardCall& call) override {
    Map(device_, count_, FloatsOut(call.outputs[0], y_type_), ClipValue{LimitsOf(call.inputs)},
        FloatsIn(call.inputs[0], types_[0]));
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Map(device_, count_, FloatsOut(gradient, types_[0]), ClipSlope{LimitsOf(call.inputs)},
        FloatsIn(call.output_gradients[0], y_type_), FloatsIn(call.inputs[0], types_[0]));
  }

 private:
  FloatLimits LimitsOf(std::span<const void* const> inputs) const {
    FloatLimits limits = limits_;
    if (limits.has_low_input) limits.low_at = FloatsIn(inputs[1], types_[1]);
    if (limits.has_high_input) limits.high_at = FloatsIn(inputs[2], types_[2]);
    return limits;
  }

  Device& device_;
  int64_t count_;
  ElementType types_[3];
  ElementType y_type_;
  FloatLimits limits_;
};

template <typename T>
class IntegerClipOp final : public PreparedOp {
 public:
  IntegerClipOp(const OpSpec& spec, Device& device)
      : device_(device),
        count_(spec.output(0).elements()),
        limits_(AttributeLimits<T, const T*>(spec)) {}

  void Forward(const ForwardCall& call) override {
    Limits<T, const T*> limits = limits_;
    if (limits.has_low_input) limits.low_at = static_cast<const T*>(call.inputs[1]);
    if (limits.has_high_input) limits.high_at = static_cast<const T*>(call.inputs[2]);
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* y = static_cast<T*>(call.outputs[0]);
    ForEach(device_, count_, [=] CKPLAN_KERNEL(int64_t i) { y[i] = limits.Clip(x[i]); });
  }

 private:
  Device& device_;
  int64_t count_;
  Limits<T, const T*> limits_;
};

Result<std::unique_ptr<PreparedOp>> PrepareClip(const OpSpec& spec, Device& device) {
  if (IsFloat(spec.input(0).type)) return Prepared<ClipOp>(spec, device);
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<IntegerClipOp<int32_t>>(spec, device);
  }
  return Prepared<IntegerClipOp<int64_t>>(spec, device);
}

// Conversion of integers and booleans to floats.
template <typename From>
class ToFloatOp final : public PreparedOp {
 public:
  ToFloatOp(const OpSpec& spec, Device& device)
      : device_(device), count_(spec.output(0).elements()), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const From*>(call.inputs[0]);
    const FloatsOut y(call.outputs[0], y_type_);
    ForEach(device_, count_, [=] CKPLAN_KERNEL(int64_t i) { y.Set(i, static_cast<float>(x[i])); });
  }

 private:
  Device& device_;
  int64_t count_;
  ElementType y_type_;
};

template <typename From>
Result<std::unique_ptr<PreparedOp>> PrepareCastOf(const OpSpec& spec, Device& device) {
  switch (spec.output(0).type) {
    case ElementType::kFloat32:
    case ElementType::kBFloat16:
      return Prepared<ToFloatOp<From>>(spec, device);
    case ElementType::kInt32:
      return Prepared<MapOp<From, int32_t, scalar::Convert<int32_t>>>(spec, device);
    case ElementType::kInt64:
      return Prepared<MapOp<From, int64_t, scalar::Convert<int64_t>>>(spec, device);
    case ElementType::kBool:
      return Prepared<MapOp<From, uint8_t, scalar::ToBool>>(spec, device);
  }
  return Unsupported(spec, "its output has an unknown type");
}

Result<std::unique_ptr<PreparedOp>> PrepareFloatCast(const OpSpec& spec, Device& device) {
  switch (spec.output(0).type) {
    case ElementType::kFloat32:
    case ElementType::kBFloat16:
      return PrepareUnary<scalar::SameFloat>(spec, device);
    case ElementType::kInt32:
      return Prepared<FloatMapOp<int32_t, scalar::Convert<int32_t>>>(spec, device);
    case ElementType::kInt64:
      return Prepared<FloatMapOp<int64_t, scalar::Convert<int64_t>>>(spec, device);
    case ElementType::kBool:
      return Prepared<FloatMapOp<uint8_t, scalar::ToBool>>(spec, device);
  }
  return Unsupported(spec, "its output has an unknown type");
}

Result<std::unique_ptr<PreparedOp>> PrepareCast(const OpSpec& spec, Device& device) {
  switch (spec.input(0).type) {
    case ElementType::kFloat32:
    case ElementType::kBFloat16:
      return PrepareFloatCast(spec, device);
    case ElementType::kInt32:
      return PrepareCastOf<int32_t>(spec, device);
    case ElementType::kInt64:
      return PrepareCastOf<int64_t>(spec, device);
    case ElementType::kBool:
      return PrepareCastOf<uint8_t>(spec, device);
  }
  return Unsupported(spec, "its input has an unknown type");
}

constexpr OpRow kClipCastOps[] = {
    {"Clip", PrepareClip},
    {"Cast", PrepareCast},
    {"CastLike", PrepareCast},
};

}  // namespace

std::span<const OpRow> ClipCastOps() { return kClipCastOps; }

}  // namespace ckplan::cuda
