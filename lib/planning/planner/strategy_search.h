// Plans with the algorithms that plan the nodes of a forward graph. Lowers their decisions to a
// schedule, and measures that on the step. For a joint graph expanded from a forward graph, turns
// the schedule into runs of the joint graph.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best plan, over all objectives that the request allows, of the algorithm or one that
// it contains (registry.h). If none fits the budget, returns the plan with the lowest peak.
//
// For the objective kAuto, returns the time-centric plan or, if it exceeds the budget, the
// memory-centric one (Kusumoto et al. 2019, section 4.4). When minimizing the peak, returns the one
// with the lower peak.
Result<Answer> SolveStrategies(const SolverInfo& info, const PlanProblem& problem,
                               const SolveLimits& limits);

// Returns the algorithm's plans for the lowest peak and the budgets of its curve (CurveBudgets in
// peak_budget.h), after preparing once. The objective kAuto includes the plans of both objectives.
Result<std::vector<Answer>> SolveForBudgets(const SolverInfo& info, const PlanProblem& problem,
                                            const SolveLimits& limits);

}  // namespace ckplan
