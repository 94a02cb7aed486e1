// RecursiveSplit → Schedule: section 4.4 of Chen et al. 2016, Eq. 2 and 3.
//
// Idea. To run a range of blocks backward, cut it into k + 1 ranges, keep what crosses the k cuts,
// and go through the ranges from the last to the first. Before the backward of a range, its forward
// runs again from the cut before it and keeps what crosses the range's own k cuts, and so on until
// a range is one block. An example with k = 1 and blocks 0 to 7:
//
//   forward   0 1 2 3│4 5│6│7    kept: the results of 3, 5 and 6, the cuts on the way to the end
//   backward  7 6                the last range is still there, at every level
//             forward 4│         backward 5 4
//             forward 0 1│2      backward 3 2
//             forward 0          backward 1 0
//
// - The last range needs no second run: the run of the range around it keeps its cuts.
// - A re-run computes only what crosses its cuts and what that needs, not the whole range.
// - Runs whose results no later step reads are removed at the end.
// - Every result that crosses a cut is kept there, so a block need not end in a single result.
//
// Cost: O(D (nodes + edges)) for D = log_{k+1}(blocks) levels.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/strategy.h"

namespace ckplan {

Schedule LowerRecursiveSplit(const TensorGraph& graph, const RecursiveSplit& split);

// Cuts [begin, end) into k + 1 ranges of sizes as equal as possible, or fewer if it has fewer
// blocks. Returns where each range begins, followed by `end`.
std::vector<int32_t> CutRange(int32_t begin, int32_t end, int32_t kept_per_level);

// The range of [0, block_count) that each node belongs to.
IdVector<NodeId, int32_t> OutermostRanges(const RecursiveSplit& split);

}  // namespace ckplan
