// About sqrt(n) segments of equal memory.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3.
//
// Idea. Cut the chain of splitting vertices into k segments, keep the k - 1 results at the cuts,
// and recompute each segment from the cut before it. Kept memory grows with k, segment memory
// shrinks with it; k = sqrt(n) balances the two for n equal layers.
//
// Guarantee  O(sqrt n) memory for n equal layers in a chain, at most one extra forward pass. A
//            graph without inner splitting vertices is one segment, which is keep-all.
// Knob       k, the number of segments; without a budget sqrt(number of splitting vertices).
// Cost       O(n) for each k.
// Paper      x is the sum of the kept results, y the largest segment with its cut (Alg. 3):
//            `result.paper.peak_bytes` is x + y, and the overhead is the cost of every node that is
//            not kept.
// Differs    the paper leaves the cuts open: we cut at the first splitting vertex at or past each
//            multiple of the graph's memory / k.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenSqrt(const Problem& problem,
                                                        const SolveLimits& limits);

}  // namespace ckplan
