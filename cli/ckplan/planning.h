// What `plan`, `compare` and `diff` share: from the options to a request, and from the planner's
// answer to a whole plan.
#pragma once

#include <string>

#include "cli/ckplan/options.h"
#include "cli/ckplan/source.h"
#include "lib/base/result.h"
#include "lib/plan/plan.h"
#include "lib/planner/planner.h"

namespace ckplan {

// --budget to --no-liveness.
void AddPlanningOptions(CommandLine& line, Options& options);

// kUsage: an unknown algorithm, a budget that cannot be read, or more than one.
Result<PlannerRequest> PlannerRequestOf(const Options& options, std::string algorithm);

// Adds to a plan what the planner cannot know.
void Complete(const Source& source, Plan* plan);

// "--budget 60%", or empty if there is none.
std::string BudgetText(const Options& options);

}  // namespace ckplan
