// Plans joint graphs with `best` (lib/planning/algorithms/best). The plans are at least as good as
// those of the other algorithms for joint graphs.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the fastest plan found within the budget, if any. A problem without a budget gets the
// plan with the lowest peak that adds at most kAddedPercentWithoutBudget
// (lib/planning/plan/added_time.h). For a balance, returns the plan with the lowest product of peak
// and time found.
Result<WithinBudget> SolveJointByBest(const PlanProblem& problem, const SolveLimits& limits);

// Returns the curve of memory against time for a problem without a budget. Each point is a plan;
// more memory costs less time.
Result<std::vector<CurvePoint>> TraceJointCurveByBest(const PlanProblem& problem,
                                                      const SolveLimits& limits);

// Requires a budget. Returns the first plan of this search that fits it and adds at most `enough`.
// If the search finds none, returns its best plan that fits, if any.
Result<std::optional<Answer>> SolveJointByBestUntil(const PlanProblem& problem, Cost enough,
                                                    const SolveLimits& limits);

}  // namespace ckplan
