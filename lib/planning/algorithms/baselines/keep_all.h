// Keeps every activation until its last use: ordinary training, the baseline of all comparisons.
//
// Guarantee  no overhead; no plan without recomputation needs less memory in the same order.
// Cost       O(n).
// Paper      none; `result.paper` holds M(V), what Kusumoto et al. 2019 call vanilla.
#pragma once

#include <memory>

#include "lib/planning/plan/run_solver.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareKeepAll(const Problem& problem,
                                                       const SolveLimits& limits);
Result<std::unique_ptr<PreparedRunSolver>> PrepareKeepAllRuns(const JointGraph& graph,
                                                              const SolveLimits& limits);

}  // namespace ckplan
