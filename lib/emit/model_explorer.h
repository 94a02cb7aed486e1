// What a plan decides of each node, as node data for Google's Model Explorer: opened beside the
// ONNX file, it gives each node its action (keep, recompute, transient) as text and as a colour
// that colour-blind readers tell apart, and each layer a count of them.
//
// Nodes are known by their names, as the viewer's adapter of ONNX files has them, and without one
// by the name of their first output.
#pragma once

#include <string>

#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

std::string WriteModelExplorer(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
