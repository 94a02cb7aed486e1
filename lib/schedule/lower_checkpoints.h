// What torch.utils.checkpoint makes of a training step, as a Schedule.
//
// A region is what one call of a checkpointed module runs. Of what a region makes, the forward pass
// keeps only what is read outside of it. As soon as backward reaches the region, the region runs
// forward again, in order and at once, up to the last node that its backward reads (PyTorch's early
// stop). Nodes of no region keep what their backward reads. With the region {b, c}:
//
//   a → b → c → d      forward a b c d, loss, backward d, forward b c, backward c b a
//
// A strategy of lower.h recomputes as late as the first reader allows, and nothing that is not
// read; a region does neither, so its plans need more of both.
//
// Cost: O(nodes + edges).
#pragma once

#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// `region_of` has the number of each node's region, below the number of nodes, or -1 for none.
Schedule LowerCheckpoints(const TensorGraph& graph, const IdVector<NodeId, int32_t>& region_of);

}  // namespace ckplan
