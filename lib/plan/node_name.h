// What people are told a node is called.
#pragma once

#include <string>

#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"

namespace ckplan {

// The node's name; without one, that of its first output, or else "node 7" by its number in files.
std::string ShownName(const TensorGraph& graph, NodeId id);
// The operation's, in the same manner: "operation 7".
std::string ShownName(const JointGraph& graph, OpId id);

}  // namespace ckplan
