// Results of cheap operations dropped, those of costly ones kept.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.2.
//   "Drop bn-relu" in its experiments leaves out pooling: chen-drop-bn-relu.
//
// Idea. A normalisation, an activation function or a pooling costs next to nothing beside a
// convolution, yet its result is as large. Drop those, keep the rest, recompute on demand.
//
// Guarantee  no convolution, matrix product, recurrent layer or attention is ever recomputed.
// Knob       none.
// Cost       O(nodes).
// Paper      `result.paper.peak_bytes` is the memory of what is kept, the overhead the forward cost
//            of what is dropped.
// Differs    the text names batch normalisation, activation functions and pooling in convolutional
//            networks, and leaves all else open:
//            - operations are judged by name (op_price.h); dropout counts as cheap, its seed is
//              replayed.
//            - additions, concatenations and unknown operations are kept. If the additions of a
//              residual network were dropped, its first backward step would have to recompute
//              the whole stream of them, and hold it.
//            - in a graph where no name is cheap or costly, such as one without any, cost decides:
//              what costs less than the average node is dropped.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropCheap(const Problem& problem,
                                                             const SolveLimits& limits);

}  // namespace ckplan
