// Draws a graph, or a plan for it: text in the DOT language for `dot -Tsvg`.
//
//   keep        blue box            segments of the plan are clusters;
//   recompute   orange ellipse      edges show the sizes of their tensors
//   transient   white dashed hexagon
//
// The colours are those of Okabe and Ito, which colour-blind readers can distinguish, and each
// action also has its own shape. Graph inputs are plain names. Deterministic; O(nodes + edges).
#pragma once

#include <string>

#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// `plan` may be null, which draws the graph alone. Otherwise it must be a plan for `graph`.
std::string WriteDot(const TensorGraph& graph, const Plan* plan);

}  // namespace ckplan
