// Plans of a joint graph by the algorithms that plan forward graphs as well
// (lib/planning/plan/run_solver.h).
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/run_solver.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best plan of all settings of the algorithm's knob or, if nothing fits the budget, its
// plan of least peak. Errors are those of the algorithm.
Result<Answer> SolveRuns(const PlanProblem& problem, const SolveLimits& limits,
                         const SolverInfo& info);

}  // namespace ckplan
