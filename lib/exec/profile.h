// Measures each node: time and workspace, for the cost model file:costs.json.
#pragma once

#include <string>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/constant_store.h"
#include "lib/exec/loss.h"
#include "lib/exec/prepared_step.h"
#include "lib/exec/step_model.h"

namespace ckplan {

struct ProfiledNode {
  std::string name;
  double forward_seconds = 0;  // Medians.
  double backward_seconds = 0;
  OpWorkspace workspace;
};

struct ProfileOptions {
  uint64_t seed = 0;
  int runs = 5;  // After one that warms up.
};

// Runs whole steps that keep everything, in the model's order, so that each node finds the caches
// as it does in training. kInfeasible: that much memory is not there.
Result<std::vector<ProfiledNode>> ProfileNodes(Backend& backend, const StepModel& step,
                                               const PreparedStep& prepared,
                                               ConstantStore& constants,
                                               const ProfileOptions& options);

}  // namespace ckplan
