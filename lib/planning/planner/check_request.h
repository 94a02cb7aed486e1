// Checks that an algorithm supports a request. Errors are kUsage.
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Checks that the algorithm supports this form of step and every field of the request, and that the
// constraints match parts of the step. kInvalidInput: the forward graph has no nodes.
Result<Done> CheckRequest(const SolverInfo& info, const TrainingStep& step,
                          const PlanRequest& request);

// The checks of CheckRequest that don't need the graph.
Result<Done> CheckSetting(const SolverInfo& info, const PlanRequest& request);

}  // namespace ckplan
