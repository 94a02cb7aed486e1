// Writes the plan's decision for each node as node data for Google's Model Explorer. Opened with
// the ONNX file, it shows each node's action (keep, recompute, transient) as text and as a colour
// that colour-blind readers can distinguish, and counts the actions in each layer.
//
// Nodes are identified by name, as in the viewer's ONNX adapter; a node without a name by that of
// its first output.
#pragma once

#include <string>

#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

std::string WriteModelExplorer(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
