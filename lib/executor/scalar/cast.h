// Conversions between element types.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "lib/executor/scalar/unary.h"

namespace ckplan::scalar {

// Conversion to an integer truncates the fraction. NaN and values out of range become 0, since both
// C++ and ONNX leave them undefined.
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

// Conversion between float types: the gradient passes unchanged.
struct SameFloat : PlainUnary<Reads::kNothing> {
  using PlainUnary::PlainUnary;
  CKPLAN_DEVICE float Value(float x) const { return x; }
  CKPLAN_DEVICE float Slope(float) const { return 1; }
};

}  // namespace ckplan::scalar
