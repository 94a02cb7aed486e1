// Clip, whose limits may be inputs, and conversions of element types.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/unary.h"
#include "lib/executor/scalar/cast.h"

namespace ckplan::cpu {

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

  // An input equal to a limit passes the gradient, as in PyTorch.
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
    case ElementType::kBFloat16:  // The backend refuses bfloat16 earlier.
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
    case ElementType::kBFloat16:  // The backend refuses bfloat16 earlier.
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
