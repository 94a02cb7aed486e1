// Plans by the algorithms that decide on the nodes of a forward graph: what they decide is lowered
// to a schedule, which is measured on the step. Where the step is a joint graph that was made of
// the forward graph, the schedule is taken as runs of it.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/plan/solver.h"
#include "lib/planner/plan_problem.h"

namespace ckplan {

// The best plan for either objective that the request allows, by the algorithm or one that it
// contains (containment.h); where nothing fits the budget, the plan of least peak.
//
// For the objective kAuto the time-centric plan, or the memory-centric one where the former does
// not fit the budget: Kusumoto et al. 2019, section 4.4. For the least peak, the one that has less.
Result<Answer> SolveByStrategies(const SolverInfo& info, const PlanProblem& problem,
                                 const SolveLimits& limits);

// The algorithm's plans for so many budgets, at equal distances from its least peak to that of
// keeping everything, which are found after one preparation. With the objective kAuto both of an
// algorithm's objectives count.
Result<std::vector<Answer>> SolveForBudgets(const SolverInfo& info, const PlanProblem& problem,
                                            int64_t budget_count, const SolveLimits& limits);

}  // namespace ckplan
