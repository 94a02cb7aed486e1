// The floats of a GPU, computed by those of the host.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "lib/executor/cuda/ptx/lanes.h"
#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

template <typename T>
uint64_t FloatBits(T value) {
  if (value != value) return sizeof(T) == 4 ? 0x7FFFFFFFU : 0x7FFFFFFFFFFFFFFFU;  // The GPU's NaN.
  return BitsOf(value);
}

template <typename T>
T Flushed(T value) {
  return std::fabs(value) < std::numeric_limits<T>::min() ? std::copysign(T{0}, value) : value;
}

// Sets the rounding of the host's floats while it lives.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) : changes_(rounding != Rounding::kNearest) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (changes_) std::fesetround(kModes[static_cast<size_t>(rounding)]);
  }
  ~RoundingScope() {
    if (changes_) std::fesetround(FE_TONEAREST);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  bool changes_;
};

template <typename T>
T RoundedToInteger(T value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(value);
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
  }
  return value;
}

// min and max: if one operand is NaN, the other one is the result; -0 is less than 0.
template <typename T>
T Smaller(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T Larger(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

// Results beyond the type are its nearest number. A NaN is 0, or the least number in 64 bits.
template <typename T, typename F>
T ToInteger(F value) {
  if (value != value) return sizeof(T) == 8 ? static_cast<T>(uint64_t{1} << 63) : T{0};
  if (value <= static_cast<F>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (value >= static_cast<F>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

}  // namespace ckplan::ptx
