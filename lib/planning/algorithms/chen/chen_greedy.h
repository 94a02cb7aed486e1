// Ends each segment as soon as it exceeds a budget.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, Alg. 3.
//
// Idea. Walk along the chain and add up the memory of the segment. Once it exceeds B, keep the next
// splitting vertex and begin a new segment. Small B: many cuts, much kept, little recomputed. Large
// B: few cuts, long segments. Between them lies the least memory.
//
// Guarantee  none. A graph without inner splitting vertices is one segment, which is keep-all.
// Knob       B, the bytes that a segment may hold; without a budget sqrt(x y) of a run with B = 0
//            (Appendix A). `--budget` looks for the least B that fits, since it keeps the most.
// Cost       O(n) for each B.
// Paper      temp, x, y -> chen_greedy.h; `result.paper.peak_bytes` is x + y, and the overhead is
//            the cost of every node with m(v) = 1.
// Differs    the end of the graph is not a candidate for a cut, and the last segment counts into y
//            (chen_greedy.h says why).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

// Alg. 3 of Chen et al. 2016: it cuts a chain wherever a segment exceeds a budget.
//
//   temp <- 0, x <- 0, y <- 0
//   for v in topological order:
//     temp <- temp + size of v's output
//     if v is a candidate and temp > B:  x <- x + size of v's output, y <- max(y, temp), temp <- 0
//
// The size is added before the test, so a cut vertex counts into the segment that it closes.
// Candidates are the splitting vertices, except one at the very end: a cut there would split
// nothing. The last segment counts into y as well; the printed program updates y only at cuts, and
// so gives a plan without cuts a memory of 0.
struct GreedyCut {
  std::vector<int32_t> segment_of_block;
  int32_t segment_count = 1;
  Bytes kept;             // x, the sum of the results at the cuts.
  Bytes largest_segment;  // y, the largest segment.
  Cost kept_time;         // Forward cost of the vertices at the cuts.
};

// O(nodes + blocks).
GreedyCut CutGreedily(const Chain& chain, const VertexGraph& vertices, Bytes budget);

// Returns floor(sqrt(a b)) for sizes whose product may not fit 64 bits.
Bytes GeometricMean(Bytes a, Bytes b);

// Appendix A: B = sqrt(x y), with x and y from a first run with B = 0.
Bytes EstimateSegmentBudget(const Chain& chain, const VertexGraph& vertices);

// The part that chen-greedy and chen-search share: the plan of one setting of B in Chen's Alg. 3.

// Makes the plan. `result.paper` has the figures of Alg. 3: B, x + y, and the forward cost of every
// node with m(v) = 1.
SolveOutcome GreedyPlan(const Problem& problem, const Chain& chain, Bytes budget);

Result<std::unique_ptr<PreparedSolver>> PrepareChenGreedy(const Problem& problem,
                                                          const SolveLimits& limits);

// Takes the best of a small grid of segment budgets, measuring each plan exactly.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, Appendix A.
//
// Idea. Alg. 3 (chen-greedy) only estimates its memory. So run it with B = 0, set B = sqrt(x y)
// from that run, and then try six budgets on [B / sqrt 2, sqrt 2 B]: each plan is lowered, its
// buffers are placed, and the plan with the least arena wins.
//
// Guarantee  none; the arena is never larger than that of chen-greedy without a budget, whose B is
//            tried as well.
// Knob       which B is taken: 1 is sqrt(x y) itself, 2 to 7 are the grid in ascending order.
//            Without a budget it is the winner; with `--budget` the one of least overhead that
//            fits.
// Cost       lowering and simulating seven plans, and placing those whose simulated peak leaves
//            them a chance to win.
// Paper      B, x, y -> chen_greedy.h; `result.paper` as chen-greedy.
// Differs    - "static allocation" is the arena of the plan file, in-place reuse included.
//            - the text leaves the spacing of the grid open: equal steps, as in the authors' own
//              program, both ends included. Among equal arenas, the one with less overhead wins,
//              then the lower setting.
inline constexpr int64_t kGridSize = 6;

Result<std::unique_ptr<PreparedSolver>> PrepareChenSearch(const Problem& problem,
                                                          const SolveLimits& limits);

// Segments by Alg. 3, plus results of costly operations of up to one segment's memory.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3:
//   "We can also generalize this algorithm by considering the cost to run each operation to try to
//   keep time consuming operations when possible."
//
// Idea. Alg. 3 gives every result inside a segment m(v) = 1, whatever it costs to compute. Here the
// results that save most time for each byte get m(v) = 0 as well, up to B bytes in total:
// convolutions rather than the normalisations and activations after them.
//
// Guarantee  none; the overhead is at most that of chen-greedy with the same B, and x + y is at
//            most B larger. A graph without inner splitting vertices is keep-all.
// Knob       B, the bytes that a segment may hold, as for chen-greedy; without a budget sqrt(x y)
//            of Alg. 3 with B = 0.
// Cost       O(n log n) once, and O(n) for each B.
// Paper      x is the sum of kept results, y the largest segment: `result.paper.peak_bytes` is x +
//            y, and the overhead is the cost of every node with m(v) = 1.
// Differs    the paper says no more than the sentence above. It leaves open
//            - what is time consuming: here, forward cost per byte of the result, in descending
//              order; among equals the earlier node.
//            - when keeping is possible: here, while these results total at most B bytes, so that
//              memory stays O(sqrt n) where that of Alg. 3 is. A result that does not fit is
//              skipped, and smaller ones are tried.
//            - y: here, a kept result counts into x and into its segment as well, like one at a
//              cut.
//            Cuts are those of Alg. 3. The last segment is kept without being counted, since our
//            schedules never drop it.
Result<std::unique_ptr<PreparedSolver>> PrepareChenKeepCostly(const Problem& problem,
                                                              const SolveLimits& limits);

}  // namespace ckplan
