// Runs a paper's algorithm, or `given`. `best` starts from these plans (best_planner.h).
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best plan within the problem's budget or, if none fits, the one with the lowest peak.
// The request must have passed CheckRequest (check_request.h). Returns the errors of MakePlan
// (planner.h).
Result<Answer> SolveWith(const SolverInfo& info, const PlanProblem& problem,
                         const SolveLimits& limits);

}  // namespace ckplan
