// Checks of any joint graph that was read, and of plans for one small joint graph,
// testdata/graphs/joint_net.json.
#pragma once

#include <string_view>

#include "lib/joint/joint_graph.h"

namespace ckplan {

// Checks that the graph is the same after it is written and read, and that its own order is a plan.
void CheckJointGraph(const JointGraph& graph);

// Returns whether the text is a plan for the small graph that passes the checker.
bool IsAcceptedJointPlan(std::string_view text);

}  // namespace ckplan
