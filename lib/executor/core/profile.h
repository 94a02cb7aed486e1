// Measures each node's time and workspace, for the cost model file:costs.json.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/loss.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

struct ProfiledNode {
  std::string name;
  double forward_seconds = 0;  // This and backward_seconds are medians over the runs.
  double backward_seconds = 0;
  OpWorkspace workspace;
};

struct ProfileOptions {
  uint64_t seed = 0;
  int runs = 5;  // Measured runs, after one run to warm up.
};

// Runs whole steps that keep everything, in the model's order, so that each node finds the caches
// in the same state as in training. kInfeasible: the device does not have enough memory.
Result<std::vector<ProfiledNode>> ProfileNodes(Backend& backend, const StepGraph& step,
                                               const StepOperators& operators,
                                               ConstantStore& constants,
                                               const ProfileOptions& options);

}  // namespace ckplan
