// Plans joint graphs with the algorithms that also plan forward graphs
// (lib/planning/plan/run_solver.h).
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/run_solver.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best plan over all settings of the algorithm's knob or, if none fits the budget, its
// plan with the lowest peak. Returns the algorithm's errors.
Result<Answer> SolveRuns(const PlanProblem& problem, const SolveLimits& limits,
                         const SolverInfo& info);

}  // namespace ckplan
