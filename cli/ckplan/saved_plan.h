// Finds the saved plans a command reads, and checks a plan before writing other files from it.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "lib/base/result.h"
#include "lib/files/input/plan_file.h"

namespace ckplan {

// The kCheckFailed error for a plan, read from `path`, that does not pass the checker.
Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path);

// Checks the plan that was read from `path` before anything is written from it. Returns kUsage if
// an output is the plan's model, which may have been found beside it, or needs a model but there is
// a graph file. Returns kCheckFailed if the plan does not pass the checker.
Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path, const Outputs& outputs);

// The plans of a command that takes several, each with its model.
struct PlanPath {
  std::string plan;
  std::string model;  // Empty if the model is beside the plan.
};

// A single plan may be followed by its model; two paths are two plans. --model names one model for
// all plans or one for each. Returns kUsage if the number of models fits neither.
Result<std::vector<PlanPath>> PlanPathsOf(const Options& options);

}  // namespace ckplan
