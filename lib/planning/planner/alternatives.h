// Suggests other algorithms when one finds no plan within a budget.
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the refusal of a request (kInfeasible) with a note: that `best` has a plan within the
// budget, or else which algorithm that answers quickly reaches least. Adds no note for a graph that
// is too large for a quick look, for a paper's own budget, or when stopped.
Error WithAlternative(Error refusal, const TrainingStep& step, const PlanRequest& request,
                      const SolveLimits& limits);

}  // namespace ckplan
