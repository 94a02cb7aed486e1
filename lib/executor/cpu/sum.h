// Long sums of floats: fast, precise, and bitwise equal for any alignment.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ckplan::cpu {

// Returns term(0) + ... + term(count - 1). Sixteen running sums in float suit vector instructions;
// they are added up in double before they lose precision. The lanes are explicit because a compiler
// that vectorises a plain loop may start at an aligned address, and so change the order of
// additions.
template <typename Term>
double SumTerms(int64_t count, const Term& term) {
  constexpr int64_t kLanes = 16;
  constexpr int64_t kBlock = 2048;
  double sum = 0;
  int64_t i = 0;
  while (i + kLanes <= count) {
    const int64_t end = std::min(count - kLanes, i + kBlock);
    float lanes[kLanes] = {};
    for (; i <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
    }
    for (const float lane : lanes) sum += static_cast<double>(lane);
  }
  for (; i < count; ++i) sum += static_cast<double>(term(i));
  return sum;
}

inline double Sum(const float* values, int64_t count) {
  return SumTerms(count, [values](int64_t i) { return values[i]; });
}

}  // namespace ckplan::cpu
