// What other algorithms could do where one refuses a budget.
#pragma once

#include "lib/base/result.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// The refusal of a request (kInfeasible) with a note: which of the algorithms that answer quickly
// has a plan within the budget, and the least that it reaches, or that none of them has one. No
// note for a graph that is too large for a quick look, for a paper's own budget, or when stopped.
Error WithAlternative(Error refusal, const TrainingStep& step, const PlanRequest& request,
                      const SolveLimits& limits);

}  // namespace ckplan
