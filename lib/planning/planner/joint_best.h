// Plans of a joint graph by `best` (lib/planning/algorithms/best), no worse than those of the other
// algorithms that plan joint graphs.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best plan within the budget or, if nothing fits it, the plan of least peak. If the
// problem asks for the least peak, returns the plan of least peak. Without a budget, returns the
// plan of the least peak that adds at most kAddedPercentWithoutBudget
// (lib/planning/plan/added_time.h). If the problem asks for a balance, returns the plan of the
// least product that is found.
Result<Answer> SolveJointByBest(const PlanProblem& problem, const SolveLimits& limits);

// Returns the curve of memory against time for a problem without a budget. There is a plan for each
// point, and points with more memory cost less time.
Result<std::vector<CurvePoint>> TraceJointCurveByBest(const PlanProblem& problem,
                                                      const SolveLimits& limits);

// Returns the first plan of this search that fits the budget, which must be given, and adds no more
// than `enough`. If there is none, returns the best plan that it finds, or nothing if none fits.
Result<std::optional<Answer>> SolveJointByBestUntil(const PlanProblem& problem, Cost enough,
                                                    const SolveLimits& limits);

}  // namespace ckplan
