// About sqrt(n) segments of equal memory.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3.
//
// Idea. Cut the chain of splitting vertices into k segments, keep the k - 1 results at the cuts,
// and recompute each segment from the cut before it. Kept memory grows with k, segment memory
// shrinks with it; k = sqrt(n) balances the two for n equal layers.
//
// Guarantee  O(sqrt n) memory for n equal layers in a chain, one extra forward pass at the most.
//            A graph without inner splitting vertices is one segment, which is keep-all.
// Knob       k, the number of segments; sqrt(number of splitting vertices) without a budget.
// Cost       O(n) for each k.
// Paper      x, the sum of the kept results, and y, the largest segment with its cut (Alg. 3):
//            `result.paper.peak_bytes` is x + y, the overhead that of every node not kept.
// Differs    the text leaves the cuts open: we cut at the first splitting vertex at or past each
//            multiple of the graph's memory / k.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenSqrt(const Problem& problem,
                                                        const SolveLimits& limits);

}  // namespace ckplan
