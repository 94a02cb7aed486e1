// Checks of a saved plan before a command writes other files from it.
#pragma once

#include <string>

#include "cli/ckplan/outputs.h"
#include "lib/files/input/plan_file.h"

namespace ckplan {

// The kCheckFailed error for a plan, read from `path`, that does not pass the checker.
Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path);

// Checks the plan that was read from `path` before anything is written from it. Returns kUsage if
// an output is the plan's model, which may have been found beside it, or needs a model but there is
// a graph file. Returns kCheckFailed if the plan does not pass the checker.
Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path, const Outputs& outputs);

}  // namespace ckplan
