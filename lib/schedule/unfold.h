// A strategy for a folded graph (lib/graph/layer_fold.h) as one for the graph itself: the nodes of
// a layer are decided together.
//
//   lower sets, blocks   a node belongs to the segment or block of its layer; so what is kept
//                        between segments is the result of a layer, never a tensor inside it
//   kept set             the results of kept layers are kept, and what backward needs from inside
//                        a layer is run again; where all layers are kept nothing is dropped
//   schedule             the nodes of a layer run one after the other, backward in reverse
#pragma once

#include "lib/graph/layer_fold.h"
#include "lib/schedule/strategy.h"

namespace ckplan {

// A schedule must have liveness frees. O(nodes), for a schedule O(steps).
Strategy Unfold(const LayerFold& fold, const Strategy& strategy);

}  // namespace ckplan
