// Plan files that a command writes other files from.
#pragma once

#include <string>

#include "cli/ckplan/outputs.h"
#include "lib/planner/plan_file.h"

namespace ckplan {

// kCheckFailed: the plan that was read from `path` does not pass the checker.
Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path);

// Before anything is written from the plan that was read from `path`. kUsage: an output is the
// plan's model, which may have been found beside it, or needs a model where there is a graph file.
// kCheckFailed: the plan does not pass the checker.
Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path, const Outputs& outputs);

}  // namespace ckplan
