// Small graphs in testdata/graphs that fuzz targets plan and read plans for. Each file is read
// once.
#pragma once

#include <string_view>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

const TensorGraph& NetGraph();      // net.json
const TensorGraph& SkipsGraph();    // skips.json
const JointGraph& JointNetGraph();  // joint_net.json

// Code shared by the targets of plans and joint graphs, and by their tests.

// True if the text is a plan for testdata/graphs/net.json that passes the check.
bool IsAcceptedPlan(std::string_view text);

// True if the text is a plan for testdata/graphs/joint_net.json that passes the check.
bool IsAcceptedJointPlan(std::string_view text);

// Checks that writing and reading preserves the graph, and that its own order is a valid schedule.
void CheckJointGraph(const JointGraph& graph);

}  // namespace ckplan
