// The graph of a prediction: the same operations, run forward only. No tensor has a gradient.
// Statistics that operations save only for their own backward are not made, so they have size 0. A
// training step of this graph without recomputation is a prediction, so everything that measures
// schedules measures predictions, too.
#pragma once

#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// O(nodes + edges).
TensorGraph PredictionGraph(const TensorGraph& graph);

}  // namespace ckplan
