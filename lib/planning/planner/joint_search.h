// What searches of `best` for plans of a joint graph share, with copies to the host and without.
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

// Returns the best plan within the budget. It is no worse than those of the other algorithms.
Result<BestOutcome> SolveBestAt(SearchEffort effort, const PlanProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits);

// Whether a search with more effort can add nothing.
bool IsFinal(const BestOptions& options, const BestOutcome& best, const SolveLimits& limits);

// Searches with less effort first, so that more effort never makes a plan worse. Goes on after
// `options.before`, if that is set: it is the outcome of as many efforts as are `done`.
Result<BestOutcome> SolveBestWithin(const PlanProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits,
                                    size_t done = 0);

}  // namespace ckplan
