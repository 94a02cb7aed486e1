// Asks a paper's algorithm, or `given`, for a plan. `best` starts from these plans
// (best_planner.h).
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best answer within the problem's budget or, if nothing fits, that of least peak. The
// request must have passed CheckRequest (check_request.h). Errors are those of MakePlan
// (planner.h).
Result<Answer> SolveWith(const SolverInfo& info, const PlanProblem& problem,
                         const SolveLimits& limits);

}  // namespace ckplan
