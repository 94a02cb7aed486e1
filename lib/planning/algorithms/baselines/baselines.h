// The two baselines: keep everything, and recompute everything.
#pragma once

#include <memory>

#include "lib/planning/plan/run_solver.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

// Keeps every activation until its last use: ordinary training, and the baseline of all
// comparisons.
//
// Guarantee  no overhead; no plan without recomputation needs less memory in the same order.
// Cost       O(n).
// Paper      none; `result.paper` holds M(V), what Kusumoto et al. 2019 call vanilla.
Result<std::unique_ptr<PreparedSolver>> PrepareKeepAll(const Problem& problem,
                                                       const SolveLimits& limits);
Result<std::unique_ptr<PreparedRunSolver>> PrepareKeepAllRuns(const JointGraph& graph,
                                                              const SolveLimits& limits);

// Keeps nothing but the inputs: the forward pass frees each tensor after its last use, and backward
// begins by recomputing what it needs. This is the opposite extreme of keep-all.
//
// Guarantee  nothing is kept between the two passes. But the recomputed forward pass holds what
//            keep-all holds, so the peak is about keep-all's. It is the canonical strategy {V} of
//            Kusumoto et al. 2019, with the overhead of its Eq. 1.
// Cost       O(n).
Result<std::unique_ptr<PreparedSolver>> PrepareRecomputeAll(const Problem& problem,
                                                            const SolveLimits& limits);

}  // namespace ckplan
