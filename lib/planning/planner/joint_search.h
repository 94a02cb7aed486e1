// Code shared by the searches of `best` for plans of a joint graph, with and without offloading.
#pragma once

#include <cstddef>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/planning/planner/warm_starts.h"

namespace ckplan {

WarmStartLimits WarmStartLimitsFor(SearchEffort effort);

// Returns the best plan within the budget, at least as good as those of the other algorithms.
Result<BestOutcome> SolveBestAt(SearchEffort effort, const PlanProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits);

// Tells whether more effort can't improve the result.
bool IsFinal(const BestOptions& options, const BestOutcome& best, const SolveLimits& limits);

// Searches with low effort first, so that more effort never makes a plan worse. If `options.before`
// is set, it is the outcome of the first `done` efforts, and the search continues from there.
Result<BestOutcome> SolveBestWithin(const PlanProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits,
                                    size_t done = 0);

}  // namespace ckplan
