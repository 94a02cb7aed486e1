// Converts the doubles of a tensor to integers.
#pragma once

#include <cstdint>

namespace ckplan::reference {

// Ends of slices may be the largest int64; as a double it is one larger, which does not fit.
inline int64_t ToInteger(double value) {
  constexpr double kBeyond = 9223372036854775808.0;
  return value < kBeyond ? static_cast<int64_t>(value) : INT64_MAX;
}

}  // namespace ckplan::reference
