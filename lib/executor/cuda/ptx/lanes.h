// The 32 threads of a warp, which the player runs together: an instruction is computed for all
// threads that are at it, in a loop over their lanes.
#pragma once

#include <cstdint>
#include <cstring>

#include "lib/base/check.h"
#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

inline constexpr int kLanes = 32;

// A set of lanes, one bit for each.
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

// The registers of a warp. Each is 64 bits wide; smaller values are in its lower bits.
class LaneRegisters {
 public:
  explicit LaneRegisters(uint64_t* values) : values_(values) {}

  uint64_t* Row(Register at) const { return values_ + static_cast<int64_t>(at) * kLanes; }
  uint64_t Bits(Register at, int lane) const { return Row(at)[lane]; }

 private:
  uint64_t* values_;
};

// Reads the lower bits of a register as a value of type T.
template <typename T>
T ValueOf(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// Returns the bits of a value, extended by zeros.
template <typename T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Returns the bits of an integer, extended by its sign: results of signed types fill their
// register, which may be wider.
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
      CKPLAN_CHECK(false, "the decoder refuses integers of other types");
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

}  // namespace ckplan::ptx
