// What must hold of any joint graph that was read, and plans for one small joint graph,
// testdata/graphs/joint_net.json.
#pragma once

#include <string_view>

#include "lib/joint/joint_graph.h"

namespace ckplan {

// That it is the same when it is written and read, and that its own order is a plan of it.
void CheckJointGraph(const JointGraph& graph);

// Whether the text is a plan for the small graph which passes the checker.
bool IsAcceptedJointPlan(std::string_view text);

}  // namespace ckplan
