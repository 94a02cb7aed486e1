// Drops the results of batch normalisations and ReLUs, and keeps all others.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 5.1:
//   "drop bn-relu, apply all system optimizations, drop result of batch norm and relu".
//
// Idea. As in chen-drop-cheap (section 4.2), but pooling is kept, as in the experiment on
// convolutional networks (Fig. 5). In conv - bn - relu, only the convolution's result is kept.
//
// Guarantee  nothing but normalisations and activation functions is ever recomputed.
// Knob       none.
// Cost       O(nodes).
// Paper      `result.paper.peak_bytes` is the memory of kept results, the overhead is the forward
//            cost of dropped ones.
// Differs    every normalisation and every activation function counts as bn and relu: the networks
//            of the experiment have no others, and later ones have them in the same place. They are
//            recognised by name (op_price.h); if there are none, nothing is dropped.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropBnRelu(const Problem& problem,
                                                              const SolveLimits& limits);

}  // namespace ckplan
