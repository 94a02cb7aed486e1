// Small graphs of testdata/graphs that fuzz targets plan, and for which they read plans. Each file
// is read once.
#pragma once

#include <string_view>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

const TensorGraph& NetGraph();      // net.json
const TensorGraph& SkipsGraph();    // skips.json
const JointGraph& JointNetGraph();  // joint_net.json

// What the targets of plans and of joint graphs share with each other and with their tests.

// Returns whether the text is a plan for testdata/graphs/net.json that passes the checker.
bool IsAcceptedPlan(std::string_view text);

// Returns whether the text is a plan for testdata/graphs/joint_net.json that passes the checker.
bool IsAcceptedJointPlan(std::string_view text);

// Checks that the graph is the same after it is written and read, and that its own order is a plan.
void CheckJointGraph(const JointGraph& graph);

}  // namespace ckplan
