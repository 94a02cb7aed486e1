// A graph, or a plan for it, as a picture: text in the DOT language for `dot -Tsvg`.
//
//   keep        blue box            segments of the plan are clusters;
//   recompute   orange ellipse      edges show the sizes of the tensors that they stand for
//   transient   white dashed hexagon
//
// The colours are Okabe and Ito's, told apart by colour-blind readers, and each action has a shape
// of its own besides. Graph inputs are plain names. Deterministic; O(nodes + edges).
#pragma once

#include <string>

#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// `plan` may be null: the graph alone. Otherwise it is a plan for `graph`.
std::string WriteDot(const TensorGraph& graph, const Plan* plan);

}  // namespace ckplan
