// Suggests other algorithms when one finds no plan within a budget.
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Adds a note to the error of an infeasible request (kInfeasible): `best` has a plan within the
// budget, or else the quick algorithm with the lowest peak. Adds no note if the graph is too large,
// the request has a paper's own budget, or a stop was requested.
Error AddAlternative(Error refusal, const TrainingStep& step, const PlanRequest& request,
                     const SolveLimits& limits);

}  // namespace ckplan
