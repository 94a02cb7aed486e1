// Translates a strategy for a folded graph (lib/problem/graph/layer_fold.h) into one for the graph
// itself: the nodes of a layer are decided together.
//
//   lower sets, blocks   a node belongs to the segment or block of its layer, so the results kept
//                        between segments are results of layers, never tensors inside a layer
//   kept set             the results of kept layers are kept, and what backward needs from inside a
//                        layer is run again; if all layers are kept, nothing is dropped
//   schedule             the nodes of a layer run one after the other, and backward in reverse
#pragma once

#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// A schedule must have liveness frees. O(nodes), or O(steps) for a schedule.
Strategy Unfold(const LayerFold& fold, const Strategy& strategy);

}  // namespace ckplan
