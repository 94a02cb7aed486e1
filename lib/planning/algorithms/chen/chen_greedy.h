// Ends each segment as soon as it exceeds a budget.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, Alg. 3.
//
// Idea. Walk along the chain and add up the segment's memory. Once it exceeds B, keep the next
// splitting vertex and begin a new segment. A small B keeps much and recomputes little; a large B
// does the opposite. The least memory lies in between.
//
// Guarantee  none. A graph without inner splitting vertices is one segment, which is keep-all.
// Knob       B, the bytes that a segment may hold; without a budget, sqrt(x y) of a run with B = 0
//            (Appendix A). `--budget` looks for the smallest B that fits, because it keeps the
//            most.
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
// The size is added before the test, so a cut vertex counts towards the segment that it closes.
// Candidates are the splitting vertices, except one at the very end, where a cut would split
// nothing. The last segment counts towards y as well; the printed program updates y only at cuts,
// so it would report 0 for a plan without cuts.
struct GreedyCut {
  std::vector<int32_t> segment_of_block;
  int32_t segment_count = 1;
  Bytes kept;             // x, the sum of the results at the cuts.
  Bytes largest_segment;  // y, the largest segment.
  Cost kept_time;         // Forward cost of the vertices at the cuts.
};

// O(nodes + blocks).
GreedyCut CutGreedily(const Chain& chain, const VertexGraph& vertices, Bytes budget);

// Returns floor(sqrt(a b)), even if the product doesn't fit in 64 bits.
Bytes GeometricMean(Bytes a, Bytes b);

// Appendix A: B = sqrt(x y), with x and y from a first run with B = 0.
Bytes EstimateSegmentBudget(const Chain& chain, const VertexGraph& vertices);

// Shared by chen-greedy and chen-search: the plan for one setting of B in Chen's Alg. 3.

// Builds the plan. `result.paper` has the figures of Alg. 3: B, x + y, and the forward cost of
// every node with m(v) = 1.
SolveOutcome GreedyPlan(const Problem& problem, const Chain& chain, Bytes budget);

Result<std::unique_ptr<PreparedSolver>> PrepareChenGreedy(const Problem& problem,
                                                          const SolveLimits& limits);

// Tries a small grid of segment budgets, measures each plan exactly, and picks the best.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, Appendix A.
//
// Idea. Alg. 3 (chen-greedy) only estimates its memory. So run it with B = 0, set B = sqrt(x y)
// from that run, and try six budgets in [B / sqrt 2, sqrt 2 B]: lower each plan, place its buffers,
// and pick the plan with the smallest arena.
//
// Guarantee  none; the arena is never larger than that of chen-greedy without a budget, whose B is
//            tried as well.
// Knob       the choice of B: 1 is sqrt(x y) itself, 2 to 7 are the grid in ascending order.
// Without
//            a budget, the winner; with `--budget`, the setting with the least overhead that fits.
// Cost       lowering and simulating seven plans, and placing those whose simulated peak is low
//            enough to win.
// Paper      B, x, y -> chen_greedy.h; `result.paper` as chen-greedy.
// Differs    - "static allocation" is the arena of the plan file, in-place reuse included.
//            - the text leaves the spacing of the grid open: equal steps, as in the authors' own
//              program, both ends included. Among equal arenas, the one with less overhead wins,
//              then the lower setting.
inline constexpr int64_t kGridSize = 6;

Result<std::unique_ptr<PreparedSolver>> PrepareChenSearch(const Problem& problem,
                                                          const SolveLimits& limits);

// Segments by Alg. 3, plus costly results up to one segment's memory.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3:
//   "We can also generalize this algorithm by considering the cost to run each operation to try to
//   keep time consuming operations when possible."
//
// Idea. Alg. 3 gives every result inside a segment m(v) = 1, whatever it costs to compute. Here,
// the results that save the most time per byte get m(v) = 0 as well, up to B bytes in total:
// convolutions rather than the normalisations and activations after them.
//
// Guarantee  none; the overhead is at most that of chen-greedy with the same B, and x + y is at
//            most B larger. A graph without inner splitting vertices is keep-all.
// Knob       B, the bytes that a segment may hold, as for chen-greedy; without a budget sqrt(x y)
//            of Alg. 3 with B = 0.
// Cost       O(n log n) once, and O(n) for each B.
// Paper      x is the sum of kept results, y the largest segment: `result.paper.peak_bytes` is x +
//            y, and the overhead is the cost of every node with m(v) = 1.
// Differs    the paper says only the sentence above. It leaves open
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
