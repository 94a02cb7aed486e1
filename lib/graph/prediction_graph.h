// The graph of a prediction: the same operations, run forward alone. No tensor has a gradient, and
// what operations save for their own backward (statistics that nobody else reads) is not made: such
// tensors have no size. A training step of this graph that recomputes nothing is a prediction, so
// everything that measures schedules measures predictions too.
#pragma once

#include "lib/graph/tensor_graph.h"

namespace ckplan {

// O(nodes + edges).
TensorGraph PredictionGraph(const TensorGraph& graph);

}  // namespace ckplan
