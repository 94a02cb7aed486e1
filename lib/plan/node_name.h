// What people are told a node is called.
#pragma once

#include <string>

#include "lib/graph/tensor_graph.h"

namespace ckplan {

// The node's name; without one, that of its first output, or else "node 7" by its number in files.
std::string ShownName(const TensorGraph& graph, NodeId id);

}  // namespace ckplan
