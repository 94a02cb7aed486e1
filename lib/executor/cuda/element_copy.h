// Copies single elements of any type. Preserves bits, except when converting between float types.
#pragma once

#include <cstdint>

#include "lib/base/check.h"
#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

struct alignas(16) Bytes16 {
  uint64_t at[2];
};

// The widest memory access, in bytes.
inline constexpr int64_t kWidestAccess = 16;

class ElementCopy {
 public:
  ElementCopy() = default;
  // The types must be equal or both be float types.
  ElementCopy(const void* from, ElementType from_type, void* to, ElementType to_type)
      : from_(from), to_(to), bytes_(static_cast<int>(SizeOf(to_type))) {
    if (from_type == to_type) return;
    CKPLAN_CHECK(IsFloat(from_type) && IsFloat(to_type),
                 "only floats are converted between storage types");
    bytes_ = to_type == ElementType::kBFloat16 ? kNarrow : kWiden;
  }
  // Copies elements of 1, 2, 4, 8 or 16 bytes.
  ElementCopy(const void* from, void* to, int64_t bytes)
      : from_(from), to_(to), bytes_(static_cast<int>(bytes)) {}

  CKPLAN_DEVICE void operator()(int64_t to, int64_t from) const {
    if (bytes_ == 4) {
      Move<uint32_t>(to, from);
    } else if (bytes_ == 16) {
      Move<Bytes16>(to, from);
    } else if (bytes_ == 2) {
      Move<uint16_t>(to, from);
    } else if (bytes_ == 8) {
      Move<uint64_t>(to, from);
    } else if (bytes_ == 1) {
      Move<uint8_t>(to, from);
    } else if (bytes_ == kNarrow) {
      static_cast<uint16_t*>(to_)[to] = ToBFloat16(static_cast<const float*>(from_)[from]);
    } else {
      static_cast<float*>(to_)[to] = FromBFloat16(static_cast<const uint16_t*>(from_)[from]);
    }
  }
  // Zeroes the element's bits.
  CKPLAN_DEVICE void Clear(int64_t to) const {
    if (bytes_ == 4 || bytes_ == kWiden) {
      static_cast<uint32_t*>(to_)[to] = 0;
    } else if (bytes_ == 16) {
      static_cast<Bytes16*>(to_)[to] = Bytes16{};
    } else if (bytes_ == 2 || bytes_ == kNarrow) {
      static_cast<uint16_t*>(to_)[to] = 0;
    } else if (bytes_ == 8) {
      static_cast<uint64_t*>(to_)[to] = 0;
    } else {
      static_cast<uint8_t*>(to_)[to] = 0;
    }
  }

 private:
  static constexpr int kNarrow = -1;  // Converts float32 to bfloat16.
  static constexpr int kWiden = -2;   // Converts bfloat16 to float32.

  template <typename T>
  CKPLAN_DEVICE void Move(int64_t to, int64_t from) const {
    static_cast<T*>(to_)[to] = static_cast<const T*>(from_)[from];
  }

  const void* from_ = nullptr;
  void* to_ = nullptr;
  int bytes_ = 4;
};

// Returns how many elements of `bytes` bytes can be copied at once if all runs have `length`
// elements and start at multiples of `length`, in memory aligned to kWidestAccess.
inline int64_t ElementsAtOnce(int64_t length, int64_t bytes) {
  int64_t at_once = 1;
  while (2 * at_once * bytes <= kWidestAccess && length % (2 * at_once) == 0) at_once *= 2;
  return at_once;
}

}  // namespace ckplan::cuda
