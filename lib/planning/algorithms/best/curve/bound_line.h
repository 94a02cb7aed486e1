// A proven bound of the added time for every budget at once: a line that falls as the budget grows.
//
//   added time
//        |\                      Each cut of a NestedNetwork gives one line. No plan lies below any
//        | \  _                  of them, so none lies below their upper envelope, which is convex.
//        |  \   - _
//        |   \______-_-_____
//        +------------------ budget
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ckplan {

// The added cost of every plan within a budget of B bytes is at least (at_zero - slope * B) /
// 2^shift. All of it is whole numbers, so nothing is lost or gained by rounding.
struct BoundLine {
  __int128 at_zero = 0;
  __int128 slope = 0;  // At least 0.
  int shift = 0;

  // Returns the least whole cost on or above the line, at least 0: costs are whole numbers.
  int64_t CostWithin(int64_t budget) const {
    const __int128 above = at_zero - slope * budget;
    if (above <= 0) return 0;
    const __int128 unit = __int128{1} << shift;
    constexpr __int128 kMost = std::numeric_limits<int64_t>::max() / 4;
    return static_cast<int64_t>(std::min((above + unit - 1) / unit, kMost));
  }

  // Returns the least budget for which the line allows a plan that adds at most `cost`.
  int64_t LeastBudget(int64_t cost) const {
    const __int128 above = at_zero - (static_cast<__int128>(cost) << shift);
    if (above <= 0 || slope == 0) return 0;
    constexpr __int128 kMost = std::numeric_limits<int64_t>::max() / 4;
    return static_cast<int64_t>(std::min((above + slope - 1) / slope, kMost));
  }
};

}  // namespace ckplan
