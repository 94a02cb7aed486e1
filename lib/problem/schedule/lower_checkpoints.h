// Decisions of other programs as schedules: checkpointed regions, and mirror counts.
#pragma once

#include <cstdint>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

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

// `region_of` has each node's region, a number below the number of nodes, or -1 for none.
Schedule LowerCheckpoints(const TensorGraph& graph, const IdVector<NodeId, int32_t>& region_of);

// Mirror counts → Schedule: Alg. 2 of Chen et al. 2016.
//
// m(v) copies of node v are added to the graph: 0 keeps the result of v, 1 runs v once more. Copy k
// of v reads copy min(k, m(u)) of each input's maker u, and backward reads the last copy, number
// m(u). Copy 0 is the first run. A copy runs when the first backward step needs it, together with
// the copies that it reads itself. A chain a → b → c → d with m(a) = 2, m(b) = 1:
//
//   forward a b c d, loss, backward d, forward a' b', backward c, forward a'', backward b, a
//
// - The paper's text has m(v) in N+ but means N: "m(v) = 0 means do not drop output of node v".
// - The paper's gradient(...) gets the node's inputs and output; ours reads those that it needs.
// - With counts of 0 and 1 this is the schedule of a KeptSet.
// - A copy that no backward step needs does not run, so v runs again at most m(v) times.
// - A read takes the newest copy that is there, whatever its number, since all copies are equal.
//
// Cost: O(copies x reads).

// The sum of the counts must be at most kMaxMirrors.
inline constexpr int64_t kMaxMirrors = 10'000'000;
Schedule LowerMirrorCounts(const TensorGraph& graph, const IdVector<NodeId, int32_t>& counts);

}  // namespace ckplan
