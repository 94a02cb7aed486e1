// Decisions → Schedule: strategies of algorithms, checkpointed regions, mirror counts, and
// strategies for folded graphs.
//
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

#include "lib/problem/graph/layer_fold.h"
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
// LowerStrategy recomputes a tensor as late as its first reader allows, and only if it is
// read. A region does neither, so its plans need more memory and more time.
//
// Cost: O(nodes + edges).

// `region_of` has each node's region, a number below the number of nodes, or -1 for none.
Schedule LowerCheckpoints(const TensorGraph& graph, const IdVector<NodeId, int32_t>& region_of);

// Mirror counts → Schedule: Alg. 2 of Chen et al. 2016.
//
// m(v) copies of node v are added to the graph: 0 keeps the result of v, 1 runs v once more. Copy k
// of v reads copy min(k, m(u)) of each input's producer u, and backward reads the last copy, number
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

// Translates a strategy for a folded graph (lib/problem/graph/layer_fold.h) into one for the graph
// itself: the nodes of a layer are decided together.
//
//   lower sets, blocks   a node belongs to the segment or block of its layer, so the results kept
//                        between segments are results of layers, never tensors inside a layer
//   kept set             the results of kept layers are kept, and what backward needs from inside a
//                        layer is run again; if all layers are kept, nothing is dropped
//   schedule             the nodes of a layer run one after the other, and backward in reverse

// A schedule must have liveness frees. O(nodes), or O(steps) for a schedule.
Strategy Unfold(const LayerFold& fold, const Strategy& strategy);

}  // namespace ckplan
