// Segments by Alg. 3, and as much memory as one may hold for the results of costly operations.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.3:
//   "We can also generalize this algorithm by considering the cost to run each operation to try to
//   keep time consuming operations when possible."
//
// Idea. Alg. 3 gives every result inside a segment m(v) = 1, whatever it costs to compute. Here the
// results that save most time for each byte have m(v) = 0 as well, up to B bytes in all:
// convolutions before the normalisations and activations behind them.
//
// Guarantee  none; no more overhead than chen-greedy with the same B, and x + y at most B larger. A
//            graph without inner splitting vertices is keep-all.
// Knob       B, what a segment may hold, as for chen-greedy; sqrt(x y) of Alg. 3 with B = 0 without
//            a budget.
// Cost       O(n log n) once, and O(n) for each B.
// Paper      x, the sum of what is kept, and y, the largest segment: `result.paper.peak_bytes` is
//            x + y, the overhead that of every node with m(v) = 1.
// Differs    the text says no more than the sentence above, and leaves open
//            - what is time consuming: forward cost for each byte of the result, in descending
//              order; of equals the earlier node.
//            - when it is possible: while the results kept for it come to B bytes at the most, so
//              that memory stays O(sqrt n) where that of Alg. 3 is. One that does not fit is
//              passed over, and smaller ones are tried.
//            - y: a kept result counts into x, and into its segment still, as that of a cut does.
//            Cuts are those of Alg. 3. The last segment is kept without being counted, since no
//            schedule of ours drops it.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenKeepCostly(const Problem& problem,
                                                              const SolveLimits& limits);

}  // namespace ckplan
