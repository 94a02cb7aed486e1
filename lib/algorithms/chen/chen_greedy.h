// Segments closed as soon as they pass a budget.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, Alg. 3.
//
// Idea. Walk along the chain and add up what a segment holds; once that is more than B, keep the
// next splitting vertex and begin a new segment. Small B: many cuts, much kept, little recomputed.
// Large B: few cuts, long segments. Between them lies the least memory.
//
// Guarantee  none. A graph without inner splitting vertices is one segment, which is keep-all.
// Knob       B, the bytes that a segment may hold; sqrt(x y) of a run with B = 0 without a budget
//            (Appendix A). `--budget` looks for the least B that fits, for it keeps the most.
// Cost       O(n) for each B.
// Paper      temp, x, y -> greedy_cut.h; `result.paper.peak_bytes` is x + y, the overhead that of
//            every node with m(v) = 1.
// Differs    the end of the graph is no candidate for a cut, and the segment that is open at the
//            end counts into y (greedy_cut.h says why).
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenGreedy(const Problem& problem,
                                                          const SolveLimits& limits);

}  // namespace ckplan
