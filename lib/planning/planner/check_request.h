// Checks whether an algorithm supports a request. Errors are kUsage.
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Checks that the algorithm can plan this form of step and supports all fields of the request, and
// that the constraints name parts of the step. kInvalidInput: a forward graph without nodes.
Result<Done> CheckRequest(const SolverInfo& info, const TrainingStep& step,
                          const PlanRequest& request);

// The part of CheckRequest that does not depend on the graph.
Result<Done> CheckSetting(const SolverInfo& info, const PlanRequest& request);

}  // namespace ckplan
