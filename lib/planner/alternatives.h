// Suggests other algorithms when one finds no plan within a budget.
#pragma once

#include "lib/base/result.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// Returns the refusal of a request (kInfeasible) with a note. The note names an algorithm that
// answers quickly and has a plan within the budget, with the least peak that it reaches, or says
// that none of them has such a plan. There is no note if the graph is too large for a quick look,
// if the budget is a paper's own, or after a stop.
Error WithAlternative(Error refusal, const TrainingStep& step, const PlanRequest& request,
                      const SolveLimits& limits);

}  // namespace ckplan
