// The values of operators that generate tensors.
#pragma once

#include <cstdint>
#include <type_traits>

#include "lib/executor/scalar/integers.h"

namespace ckplan::scalar {

// Returns element i of Range. Floats are computed in double precision; integers wrap.
template <typename T>
CKPLAN_DEVICE T RangeValue(T start, T step, int64_t i) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(static_cast<double>(start) +
                              static_cast<double>(i) * static_cast<double>(step));
  } else {
    return WrapAdd(start, WrapMul(static_cast<T>(i), step));
  }
}

}  // namespace ckplan::scalar
