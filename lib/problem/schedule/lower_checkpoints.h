// The training step that torch.utils.checkpoint produces, as a Schedule.
//
// A region is the set of nodes that one call of a checkpointed module runs. The forward pass keeps
// only those results of a region that are read outside of it. As soon as backward reaches the
// region, the region runs forward again, at once and in order, up to the last node that its
// backward reads (PyTorch's early stop). Nodes of no region keep what their backward reads. With
// the region {b, c}:
//
//   a → b → c → d      forward a b c d, loss, backward d, forward b c, backward c b a
//
// LowerStrategy (lower.h) recomputes a tensor as late as its first reader allows, and only if it is
// read. A region does neither, so its plans need more memory and more time.
//
// Cost: O(nodes + edges).
#pragma once

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// `region_of` has each node's region, a number below the number of nodes, or -1 for none.
Schedule LowerCheckpoints(const TensorGraph& graph, const IdVector<NodeId, int32_t>& region_of);

}  // namespace ckplan
