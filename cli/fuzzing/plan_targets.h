// What the targets of plans and of joint graphs share with each other and with their tests.
#pragma once

#include <string_view>

#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

// Returns whether the text is a plan for testdata/graphs/net.json that passes the checker.
bool IsAcceptedPlan(std::string_view text);

// Returns whether the text is a plan for testdata/graphs/joint_net.json that passes the checker.
bool IsAcceptedJointPlan(std::string_view text);

// Checks that the graph is the same after it is written and read, and that its own order is a plan.
void CheckJointGraph(const JointGraph& graph);

}  // namespace ckplan
