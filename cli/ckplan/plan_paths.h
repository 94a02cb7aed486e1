// The plans of a command that takes several, each with its model.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "lib/base/result.h"

namespace ckplan {

struct PlanPath {
  std::string plan;
  std::string model;  // Empty: beside the plan.
};

// One plan may be followed by its model; two plans are two plans. --model names one model for all,
// or one for each; kUsage if it does neither.
Result<std::vector<PlanPath>> PlanPathsOf(const Options& options);

}  // namespace ckplan
