// Checks the steps of plans against their constraints: the fields keep, recompute and never_rerun
// of the request (docs/constraints.md). It shares no code with the planner's implementation, not
// even the matching of patterns, so that it can find its faults.
#pragma once

#include <string>
#include <vector>

#include "lib/planning/plan/request.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns one sentence for each violation. The steps must be those of a valid schedule of the
// training step.
std::vector<std::string> BrokenConstraints(const TrainingStep& step, const PlanRequest& request,
                                           const Schedule& schedule);

}  // namespace ckplan
