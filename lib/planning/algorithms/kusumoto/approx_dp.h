// Dynamic programming over the closures of single nodes: fast, and near the exact DP in practice.
//
//   Kusumoto, Inoue, Watanabe, Akiba, Koyama. "A Graph Theoretic Framework of Recomputation
//   Algorithms for Memory-Efficient Backpropagation", NeurIPS 2019, section 4.3.
//
// Idea. The same recurrence as exact-dp, but over the n closures L^v = {w : v is reachable from w}
// in place of all lower sets, which may be exponentially many.
//
// Guarantee  best canonical strategy among sequences of closures; a heuristic for all sequences.
//            Its least feasible budget can be higher than exact-dp's.
// Knob       B of Eq. 2; without a budget the least feasible B.
// Cost       O(N S^2) time for S closures and N states (t, m) of a set, few in practice (see
//            lower_set_dp.h); O(S n / 64 + N S) memory. S is n up to kMaxClosures. For larger
//            graphs only that many closures are taken, at equal distances, and fewer if their
//            boundaries are wide (LowerSetFamily::Closures); the plan says so.
// Paper      L^v -> closure, U -> cached, M_v, T_v, B as in exact_dp.h.
// Differs    V is added to the family if the graph has several sinks; without V no sequence would
//            end.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareApproxDp(const Problem& problem,
                                                        const SolveLimits& limits);

}  // namespace ckplan
