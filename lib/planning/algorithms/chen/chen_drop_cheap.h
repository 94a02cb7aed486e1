// Drops the results of cheap operations, and keeps those of costly ones.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.2.
//   "Drop bn-relu" in its experiments keeps pooling: see chen-drop-bn-relu.
//
// Idea. A normalisation, an activation function or a pooling costs next to nothing compared with a
// convolution, yet its result is as large. Drop these results, keep the others, and recompute on
// demand.
//
// Guarantee  no convolution, matrix product, recurrent layer or attention is ever recomputed.
// Knob       none.
// Cost       O(nodes).
// Paper      `result.paper.peak_bytes` is the memory of kept results, the overhead is the forward
//            cost of dropped ones.
// Differs    the text names batch normalisation, activation functions and pooling in convolutional
//            networks, and leaves everything else open:
//            - operations are judged by name (op_price.h); dropout counts as cheap, since its seed
//              is replayed.
//            - additions, concatenations and unknown operations are kept. If the additions of a
//              residual network were dropped, its first backward step would have to recompute
//              the whole stream of them, and hold it.
//            - in a graph without cheap or costly names, such as one without names, cost decides:
//              nodes that cost less than the average are dropped.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropCheap(const Problem& problem,
                                                             const SolveLimits& limits);

}  // namespace ckplan
