// The checker judges plans: it replays the schedule a second time, plainly, and shares no code with
// the solvers, the simulator or the arena. It runs on every plan before the plan is shown or
// written, and on every plan file that is read.
//
// It recomputes every figure and looks for: steps that the graph does not have, reads of absent
// tensors, an order of steps that the request does not allow, memory left at the end, two buffers
// in one place at one time, figures or decisions that differ from the steps, a peak above the
// budget, a bound that does not hold, and names and sizes of nodes that differ from the graph's.
// docs/plan-format.md lists what the checker cannot know.
#pragma once

#include <string>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// One line for each fault; empty if the plan is correct. O(steps x (reads + log buffers)).
std::vector<std::string> CheckPlan(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
