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

#include <cstdint>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

Schedule LowerStrategy(const TensorGraph& graph, const Strategy& strategy);

// Segment of each node, 0-based in forward order; all 0 for strategies without segments. The
// segments of a recursive split are its outermost ranges.
IdVector<NodeId, int32_t> SegmentsOf(const TensorGraph& graph, const Strategy& strategy);

// The nodes whose results a lower-set sequence keeps: the boundaries (nodes with a reader in a
// later segment) and the whole last segment.
IdVector<NodeId, bool> KeptBy(const TensorGraph& graph, const LowerSetSequence& sequence);

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
Schedule LowerRecursiveSplit(const TensorGraph& graph, const RecursiveSplit& split);

// Cuts [begin, end) into k + 1 ranges of sizes as equal as possible, or fewer if it has fewer
// blocks. Returns where each range begins, followed by `end`.
std::vector<int32_t> CutRange(int32_t begin, int32_t end, int32_t kept_per_level);

// The range of [0, block_count) that each node belongs to.
IdVector<NodeId, int32_t> OutermostRanges(const RecursiveSplit& split);

// Removes the recomputations of a schedule whose results are never read.

// Returns the schedule without the runs, beyond the first of each node or operation, whose results
// no later step reads. The schedule must free by liveness. O(reads of all steps).
Schedule WithoutUnreadRuns(const TrainingStep& of, const Schedule& schedule);

}  // namespace ckplan
