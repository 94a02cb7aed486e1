// Plans of a joint graph by `best` (lib/algorithms/best), no worse than those of the other
// algorithms that plan joint graphs.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/solver.h"
#include "lib/planner/plan_problem.h"

namespace ckplan {

// Within the budget, of least peak, or, for no budget, of the least peak that adds at most
// kAddedPercentWithoutBudget (lib/plan/added_time.h), as the problem asks. Where nothing fits the
// budget, its plan of least peak.
Result<Answer> SolveJointByBest(const PlanProblem& problem, const SolveLimits& limits);

// Without a budget: what memory costs. Each point has a plan; more memory costs less time.
Result<std::vector<CurvePoint>> TraceJointCurveByBest(const PlanProblem& problem,
                                                      const SolveLimits& limits);

// Within the budget, which is given: the first plan that this search comes to which adds no more
// than `enough`; where there is none, the best that it finds; nothing if none fits.
Result<std::optional<Answer>> SolveJointByBestUntil(const PlanProblem& problem, Cost enough,
                                                    const SolveLimits& limits);

}  // namespace ckplan
