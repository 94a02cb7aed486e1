// Lowers decisions to schedules: strategies of algorithms, checkpointed regions, mirror counts, and
// strategies for folded graphs.
//
// Strategy → Schedule.
//
// Idea. Run everything forward, then walk backward. Before a backward step reads a dropped tensor,
// recompute it with its dropped ancestors. A recomputed tensor stays for all later readers, so each
// tensor is recomputed at most once. It follows that
//   - a tensor is recomputed just before its first reader, not with its whole segment;
//   - nodes that backward does not need are not recomputed;
//   - the last segment of a sequence is kept, since its backward comes first.
// Frees follow from liveness (simulate.h).
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

// Returns each node's segment, from 0 in forward order; all 0 for strategies without segments. The
// segments of a recursive split are its outermost ranges.
IdVector<NodeId, int32_t> SegmentsOf(const TensorGraph& graph, const Strategy& strategy);

// Returns the nodes that a lower-set sequence keeps: the boundaries (nodes with a reader in a later
// segment) and the whole last segment.
IdVector<NodeId, bool> KeptBy(const TensorGraph& graph, const LowerSetSequence& sequence);

// RecursiveSplit → Schedule: section 4.4 of Chen et al. 2016, Eq. 2 and 3.
//
// Idea. To run a range of blocks backward, cut it into k + 1 ranges, keep the results that cross
// the k cuts, and process the ranges from last to first. Before a range's backward, rerun its
// forward from the cut before it, keep the results that cross the range's own k cuts, and so on
// until a range is one block. An example with k = 1 and blocks 0 to 7:
//
//   forward   0 1 2 3│4 5│6│7    kept: the results of 3, 5 and 6, at the cuts towards the end
//   backward  7 6                the last range is still in memory, at each level
//             forward 4│         backward 5 4
//             forward 0 1│2      backward 3 2
//             forward 0          backward 1 0
//
// - The last range needs no rerun: the run of the enclosing range keeps its cuts.
// - A rerun computes only the results that cross its cuts and their ancestors, not the whole range.
// - Runs whose results no later step reads are removed at the end.
// - All results that cross a cut are kept, so a block need not end in a single result.
//
// Cost: O(D (nodes + edges)) for D = log_{k+1}(blocks) levels.
Schedule LowerRecursiveSplit(const TensorGraph& graph, const RecursiveSplit& split);

// Cuts [begin, end) into k + 1 ranges of nearly equal size, or fewer if it has fewer blocks.
// Returns the begin of each range, followed by `end`.
std::vector<int32_t> CutRange(int32_t begin, int32_t end, int32_t kept_per_level);

// Returns the range of [0, block_count) to which each node belongs.
IdVector<NodeId, int32_t> OutermostRanges(const RecursiveSplit& split);

// Removes recomputations whose results no later step reads. The schedule must free by liveness.
// O(reads of all steps).
Schedule RemoveUnreadRuns(const TrainingStep& of, const Schedule& schedule);

// The training step that torch.utils.checkpoint produces, as a Schedule.
//
// A region is the set of nodes that one call of a checkpointed module runs. The forward pass keeps
// only the results of a region that are read outside of it. When backward reaches the region, the
// whole region reruns forward in order, up to the last node that its backward reads (PyTorch's
// early stop). Nodes outside regions keep the tensors that their backward reads. With the region
// {b, c}:
//
//   a → b → c → d      forward a b c d, loss, backward d, forward b c, backward c b a
//
// LowerStrategy recomputes a tensor only if it is read, and just before its first reader. Regions
// do not, so their plans need more memory and more time.
//
// Cost: O(nodes + edges).

// `region_of` is each node's region, a number below the number of nodes, or -1.
Schedule LowerCheckpoints(const TensorGraph& graph, const IdVector<NodeId, int32_t>& region_of);

// Mirror counts → Schedule: Alg. 2 of Chen et al. 2016.
//
// Adds m(v) copies of node v to the graph: 0 keeps the result of v, 1 reruns v once. Copy k of v
// reads copy min(k, m(u)) of each input's producer u, and backward reads the last copy, m(u). Copy
// 0 is the first run. A copy runs just before the first backward step that needs it, after the
// copies that it reads. A chain a → b → c → d with m(a) = 2, m(b) = 1:
//
//   forward a b c d, loss, backward d, forward a' b', backward c, forward a'', backward b, a
//
// - The paper's text has m(v) in N+ but means N: "m(v) = 0 means do not drop output of node v".
// - The paper's gradient(...) gets the node's inputs and output; ours reads only those it needs.
// - With counts of 0 and 1 this is the schedule of a KeptSet.
// - A copy that backward does not need does not run, so v reruns at most m(v) times.
// - A read uses the newest copy in memory, since all copies are equal.
//
// Cost: O(copies x reads).

// The sum of the counts must be at most kMaxMirrors.
inline constexpr int64_t kMaxMirrors = 10'000'000;
Schedule LowerMirrorCounts(const TensorGraph& graph, const IdVector<NodeId, int32_t>& counts);

// Translates a strategy for a folded graph (lib/problem/graph/layer_fold.h) to the graph itself,
// with the same decision for all nodes of a layer.
//
//   lower sets, blocks   a node belongs to the segment or block of its layer, so only results of
//                        layers are kept between segments, not tensors inside a layer
//   kept set             keeps the results of kept layers, and recomputes the tensors that backward
//                        needs inside a layer; if all layers are kept, all nodes are
//   schedule             the nodes of a layer run one after the other, and backward in reverse
//
// A schedule must free by liveness. O(nodes), or O(steps) for a schedule.
Strategy Unfold(const LayerFold& fold, const Strategy& strategy);

}  // namespace ckplan
