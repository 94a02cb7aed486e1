// Judges the steps of plans by their constraints: the fields keep, recompute and never_rerun of the
// request (docs/constraints.md). It shares no code with the planner's side of them, down to what a
// pattern chooses: a judge is no relative of the accused.
#pragma once

#include <string>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/request.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// One sentence for each thing that the steps break. They are those of a training step of the graph.
std::vector<std::string> BrokenConstraints(const TensorGraph& graph, const PlanRequest& request,
                                           const Schedule& schedule);
std::vector<std::string> BrokenConstraints(const JointGraph& graph, const PlanRequest& request,
                                           const Schedule& schedule);

}  // namespace ckplan
