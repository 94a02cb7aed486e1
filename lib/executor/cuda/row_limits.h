// Which rows a warp can hold in its registers (held_row.h).
#pragma once

#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

// Numbers of groups of kVector elements for each thread for which kernels are compiled, and the
// longest rows that fit into them.
inline constexpr int kFewGroups = 4;
inline constexpr int kManyGroups = 8;
inline constexpr int64_t kHoldingThreads = 32;
inline constexpr int64_t kLongestHeldRow = kManyGroups * kHoldingThreads * kVector;

// Whether rows of this length can be held; each begins at a multiple of kVector elements.
constexpr bool CanHoldRow(int64_t size) {
  return size > 0 && size % kVector == 0 && size <= kLongestHeldRow;
}
constexpr bool FitsFewGroups(int64_t size) {
  return size <= kFewGroups * kHoldingThreads * kVector;
}

}  // namespace ckplan::cuda
