// Arithmetic on sizes that come from files: an overflow gives no value; nothing wraps around.
#pragma once

#include <cstdint>
#include <optional>

namespace ckplan {

inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Rounds `amount` up to a multiple of `alignment`, which is at least 1. Their sum must not
// overflow.
inline int64_t RoundUp(int64_t amount, int64_t alignment) {
  return (amount + alignment - 1) / alignment * alignment;
}

}  // namespace ckplan
