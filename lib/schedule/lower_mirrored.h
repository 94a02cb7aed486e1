// Mirror counts → Schedule: Alg. 2 of Chen et al. 2016.
//
// m(v) copies of node v are added to the graph: 0 keeps the result of v, 1 runs v once more. Copy k
// of v reads copy min(k, m(u)) of what u makes, and backward reads the last copy, number m(u); copy
// 0 is the first run. A copy is run when the first backward step needs it, together with those that
// it needs itself. A chain a → b → c → d with m(a) = 2, m(b) = 1:
//
//   forward a b c d, loss, backward d, forward a' b', backward c, forward a'', backward b, a
//
// - The text has m(v) in N+, and means N: "m(v) = 0 means do not drop output of node v".
// - Its gradient(...) is given the node's inputs and output; ours reads those that it needs.
// - With counts of 0 and 1 this is the schedule of a KeptSet.
// - A copy that no backward step needs is not run, so m(v) is the most that v is run again.
// - A read takes the newest copy that is there, whatever its number: all of them are equal.
//
// Cost: O(copies x reads).
#pragma once

#include <cstdint>

#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// The counts together must be no more than kMaxMirrors.
inline constexpr int64_t kMaxMirrors = 10'000'000;
Schedule LowerMirrorCounts(const TensorGraph& graph, const IdVector<NodeId, int32_t>& counts);

}  // namespace ckplan
