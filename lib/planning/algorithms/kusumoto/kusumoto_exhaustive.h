// Depth-first search over all sequences of lower sets.
//
//   Kusumoto, Inoue, Watanabe, Akiba, Koyama. "A Graph Theoretic Framework of Recomputation
//   Algorithms for Memory-Efficient Backpropagation", NeurIPS 2019, section 4.1.
//
// Idea. Extend L1 < ... < Li by every larger lower set that keeps Eq. 2 within the budget, and
// remember the best overhead on reaching V. Nothing is shared between branches.
//
// Guarantee  the optimal canonical strategy, as with exact-dp, found in the simplest way: use it to
//            understand or to verify exact-dp, not to plan.
// Knob       B of Eq. 2; without a budget the least feasible B.
// Cost       exponential in the number of lower sets; refused above kMaxExhaustiveLowerSets.
// Paper      as in exact_dp.h. Costs are not rounded.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

inline constexpr int64_t kMaxExhaustiveLowerSets = 24;  // At worst, these are 2^22 sequences.

Result<std::unique_ptr<PreparedSolver>> PrepareKusumotoExhaustive(const Problem& problem,
                                                                  const SolveLimits& limits);

}  // namespace ckplan
