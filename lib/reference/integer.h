// Integers among the doubles of a tensor.
#pragma once

#include <cstdint>

namespace ckplan::reference {

// The ends of slices are the largest integer, which as a double is one more.
inline int64_t ToInteger(double value) {
  constexpr double kBeyond = 9223372036854775808.0;
  return value < kBeyond ? static_cast<int64_t>(value) : INT64_MAX;
}

}  // namespace ckplan::reference
