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
// Paper      temp, x, y -> greedy_cut.h; `result.paper.peak_bytes` is x + y, and the overhead is
//            the cost of every node with m(v) = 1.
// Differs    the end of the graph is not a candidate for a cut, and the last segment counts into y
//            (greedy_cut.h says why).
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenGreedy(const Problem& problem,
                                                          const SolveLimits& limits);

}  // namespace ckplan
