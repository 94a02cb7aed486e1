// Integer arithmetic that is defined for all operands: it wraps, and dividing by 0 gives 0. Also
// defines CKPLAN_DEVICE, which marks functions that kernels call.
#pragma once

#include <cstdint>
#include <type_traits>

// Marks functions that kernels call: nvcc compiles them for both host and GPU; other compilers see
// ordinary functions.
#ifdef __CUDACC__
#define CKPLAN_DEVICE __host__ __device__
#else
#define CKPLAN_DEVICE
#endif

namespace ckplan::scalar {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

template <typename T>
CKPLAN_DEVICE T WrapAdd(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <typename T>
CKPLAN_DEVICE T WrapSub(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <typename T>
CKPLAN_DEVICE T WrapMul(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
}
// Rounds towards 0.
template <typename T>
CKPLAN_DEVICE T SafeDiv(T a, T b) {
  return b == 0 ? T{0} : b == -1 ? WrapSub(T{0}, a) : static_cast<T>(a / b);
}
// The remainder has the sign of the dividend.
template <typename T>
CKPLAN_DEVICE T SafeRemainder(T a, T b) {
  return b == 0 || b == -1 ? T{0} : static_cast<T>(a % b);
}

// Values of operators that generate tensors.

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
