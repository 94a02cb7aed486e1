// The 32 threads of a warp, which the interpreter runs together: it computes an instruction for all
// threads at it, in a loop over their lanes.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lib/base/check.h"
#include "lib/executor/cuda/testing/ptx/program.h"

namespace ckplan::ptx {

inline constexpr int kLanes = 32;

// A set of lanes, one bit each.
using LaneMask = uint32_t;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

template <typename Body>
void ForLanes(LaneMask lanes, const Body& body) {
  if (lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
    return;
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) body(__builtin_ctz(rest));
}

// A warp's registers. Each is 64 bits wide; smaller values are in the low bits.
class LaneRegisters {
 public:
  explicit LaneRegisters(uint64_t* values) : values_(values) {}

  uint64_t* Row(Register at) const { return values_ + static_cast<int64_t>(at) * kLanes; }
  uint64_t Bits(Register at, int lane) const { return Row(at)[lane]; }

 private:
  uint64_t* values_;
};

// Reads a register's low bits as a value of type T.
template <typename T>
T ValueOf(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// Returns a value's bits, zero-extended.
template <typename T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Returns an integer's bits, sign-extended: results of signed types fill their register, which may
// be wider.
template <typename T>
uint64_t ExtendedBits(T value) {
  return static_cast<uint64_t>(value);
}

// Calls code for the C++ type of an instruction's operands.
template <typename Body>
void WithInteger(Type type, const Body& body) {
  switch (type) {
    case Type::kPred:
    case Type::kU8:
      return body(uint8_t{});
    case Type::kU16:
      return body(uint16_t{});
    case Type::kU32:
      return body(uint32_t{});
    case Type::kU64:
      return body(uint64_t{});
    case Type::kS8:
      return body(int8_t{});
    case Type::kS16:
      return body(int16_t{});
    case Type::kS32:
      return body(int32_t{});
    case Type::kS64:
      return body(int64_t{});
    default:
      CKPLAN_CHECK(false, "the decoder has rejected other integer types");
  }
}

template <typename Body>
void WithFloat(Type type, const Body& body) {
  if (type == Type::kF32) return body(float{});
  body(double{});
}

template <typename Body>
void WithType(Type type, const Body& body) {
  if (IsFloat(type)) return WithFloat(type, body);
  WithInteger(type, body);
}

// GPU floats, computed with the host's floats.
template <typename T>
uint64_t FloatBits(T value) {
  if (value != value) return sizeof(T) == 4 ? 0x7FFFFFFFU : 0x7FFFFFFFFFFFFFFFU;  // The GPU's NaN.
  return BitsOf(value);
}

template <typename T>
T Flushed(T value) {
  return std::fabs(value) < std::numeric_limits<T>::min() ? std::copysign(T{0}, value) : value;
}

// Sets the host's float rounding during its lifetime.
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

// min and max: if one operand is NaN, the result is the other; -0 is less than 0.
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

// Results out of range become the nearest number of the type. NaN becomes 0, or the minimum in 64
// bits.
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
