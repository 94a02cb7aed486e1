// Whether an algorithm takes what a request asks of it. Errors are kUsage.
#pragma once

#include "lib/base/result.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// The algorithm can plan such a step, and takes all fields of the request; its constraints are such
// of the step. kInvalidInput: a forward graph without nodes.
Result<Done> CheckRequest(const SolverInfo& info, const TrainingStep& step,
                          const PlanRequest& request);

// The part of it that does not depend on the graph.
Result<Done> CheckSetting(const SolverInfo& info, const PlanRequest& request);

}  // namespace ckplan
