// Plans by the algorithms that decide on the nodes of a forward graph. Their decisions are lowered
// to a schedule, which is measured on the step. If the step is a joint graph that was made from the
// forward graph, the schedule is turned into runs of the joint graph.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best plan, for any objective that the request allows, by the algorithm or one that it
// contains (registry.h). If nothing fits the budget, returns the plan of least peak.
//
// For the objective kAuto, returns the time-centric plan, or the memory-centric plan if the first
// does not fit the budget: Kusumoto et al. 2019, section 4.4. If the least peak is asked for,
// returns the one of less peak.
Result<Answer> SolveStrategies(const SolverInfo& info, const PlanProblem& problem,
                               const SolveLimits& limits);

// Returns the algorithm's plans for its least peak and the budgets of its curve (CurveBudgets in
// peak_budget.h), after one preparation. The objective kAuto includes the plans of both objectives.
Result<std::vector<Answer>> SolveForBudgets(const SolverInfo& info, const PlanProblem& problem,
                                            const SolveLimits& limits);

}  // namespace ckplan
