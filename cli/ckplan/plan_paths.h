// The plans of a command that takes several, each with its model.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "lib/base/result.h"

namespace ckplan {

struct PlanPath {
  std::string plan;
  std::string model;  // Empty if the model is beside the plan.
};

// A single plan may be followed by its model; two paths are two plans. --model names one model for
// all plans or one for each. Returns kUsage if the number of models fits neither.
Result<std::vector<PlanPath>> PlanPathsOf(const Options& options);

}  // namespace ckplan
