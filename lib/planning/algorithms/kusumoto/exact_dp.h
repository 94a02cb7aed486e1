// Exact dynamic programming over all lower sets.
//
//   Kusumoto, Inoue, Watanabe, Akiba, Koyama. "A Graph Theoretic Framework of Recomputation
//   Algorithms for Memory-Efficient Backpropagation", NeurIPS 2019, section 4.2, Alg. 1.
//
// Idea. A canonical strategy is an increasing sequence of lower sets L1 < L2 < ... < Lk = V. The
// forward pass keeps the boundary of each Li; backward recomputes each Li \ Li-1 once. opt[L, t] is
// the least memory kept for boundaries on the way to L with overhead t (lower_set_dp.h).
//
// Guarantee  optimal for Eq. 1 under the budget of Eq. 2 among canonical strategies. If costs have
//            to be rounded, or a search with exact costs would take too long, the plan says how
//            near the optimum it is proven to be (lower_set_dp.h). It is not optimal among all
//            schedules, nor for the simulated peak, which liveness makes lower than Eq. 2.
// Knob       B of Eq. 2; without a budget the least feasible B.
// Cost       O(P N) time, P = pairs of nested lower sets whose difference fits the budget, N =
//            states (t, m) of a set, few in practice; O(S (N + n / 64)) memory for S lower sets. S
//            can be exponential in the width of the graph: refused above kMaxLowerSets.
// Paper      U -> cached, M_v, T_v, B, L as there.
// Differs    - sets are visited after their subsets. The authors' program numbers sets as it finds
//              them and tries only higher numbers, which misses transitions.
//            - The memory-centric objective is Alg. 1, read literally: max at line 15 over all
//              states.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

// Above these limits exact-dp refuses and reports the number: docs/quality.md has the sizes of
// real models.
inline constexpr int64_t kMaxLowerSets = 250'000;
inline constexpr int64_t kMaxLowerSetBytes = int64_t{512} << 20;  // One bit per node and set.
inline constexpr int64_t kMaxTransitions = 60'000'000'000;        // This takes minutes on one core.

Result<std::unique_ptr<PreparedSolver>> PrepareExactDp(const Problem& problem,
                                                       const SolveLimits& limits);

}  // namespace ckplan
