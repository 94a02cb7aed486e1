// Checks a plan's steps against the request's keep, recompute and never_rerun
// (docs/constraints.md). It shares no code with the planner, not even pattern matching, so that it
// can find the planner's faults.
#pragma once

#include <string>
#include <vector>

#include "lib/planning/plan/request.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns one sentence per violation. `schedule` must be valid for the step.
std::vector<std::string> BrokenConstraints(const TrainingStep& step, const PlanRequest& request,
                                           const Schedule& schedule);

}  // namespace ckplan
