// Checks the steps of plans against their constraints: the fields keep, recompute and never_rerun
// of the request (docs/constraints.md). It shares no code with the planner's implementation, not
// even the matching of patterns, so that it can find its faults.
#pragma once

#include <string>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/request.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// Returns one sentence for each violation. The steps must be those of a training step of the graph.
std::vector<std::string> BrokenConstraints(const TensorGraph& graph, const PlanRequest& request,
                                           const Schedule& schedule);
std::vector<std::string> BrokenConstraints(const JointGraph& graph, const PlanRequest& request,
                                           const Schedule& schedule);

}  // namespace ckplan
