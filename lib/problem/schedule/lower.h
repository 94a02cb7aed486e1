// Strategy → Schedule.
//
// Idea. Run everything forward, then walk backward. Whenever a backward step reads a dropped
// tensor, recompute it first, together with its dropped ancestors. A recomputed tensor stays for
// all later readers, so nothing is recomputed twice. It follows that
//   - recomputation happens as late as the first reader allows, not a segment at a time;
//   - a node that no backward step needs is never recomputed;
//   - the last segment of a sequence is kept, since its backward comes first.
// The frees follow from liveness (simulate.h).
//
// Cost: O(nodes + edges).
#pragma once

#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/strategy.h"

namespace ckplan {

Schedule LowerStrategy(const TensorGraph& graph, const Strategy& strategy);

// Segment of each node, 0-based in forward order; all 0 for strategies without segments. The
// segments of a recursive split are its outermost ranges.
IdVector<NodeId, int32_t> SegmentsOf(const TensorGraph& graph, const Strategy& strategy);

// The nodes whose results a lower-set sequence keeps: the boundaries (nodes with a reader in a
// later segment) and the whole last segment.
IdVector<NodeId, bool> KeptBy(const TensorGraph& graph, const LowerSetSequence& sequence);

}  // namespace ckplan
