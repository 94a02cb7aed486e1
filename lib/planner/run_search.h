// Plans of a joint graph by the algorithms that plan forward graphs as well
// (lib/plan/run_solver.h).
#pragma once

#include "lib/base/result.h"
#include "lib/plan/run_solver.h"
#include "lib/plan/solver.h"
#include "lib/planner/plan_problem.h"

namespace ckplan {

// The best plan of all settings of the algorithm's knob; where nothing fits the budget, its plan of
// least peak. Errors are the algorithm's.
Result<Answer> SolveByRuns(const PlanProblem& problem, const SolveLimits& limits,
                           PrepareRuns prepare);

}  // namespace ckplan
