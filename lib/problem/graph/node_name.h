// The name of a node for messages.
#pragma once

#include <string>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Returns the node's name, or that of its first output, or else "node 7" by its number in files.
std::string ShownName(const TensorGraph& graph, NodeId id);
// Returns the operation's name in the same manner: "operation 7".
std::string ShownName(const JointGraph& graph, OpId id);

}  // namespace ckplan
