// Long sums of floats: quick, precise, and the same bits at any address.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ckplan::cpu {

// term(0) + ... + term(count - 1). Sixteen running sums in float, for vector instructions, which
// are added up in double before they lose precision. Written out in lanes, because a compiler that
// vectorises a plain loop may begin at an address that suits it, and so change the order.
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
