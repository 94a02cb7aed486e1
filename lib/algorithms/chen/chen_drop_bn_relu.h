// Results of batch normalisations and ReLUs dropped, all others kept.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 5.1:
//   "drop bn-relu, apply all system optimizations, drop result of batch norm and relu".
//
// Idea. That of chen-drop-cheap (section 4.2, which also drops pooling), as the experiment on
// convolutional networks (Fig. 5) has it: in conv - bn - relu the convolution's result is kept.
//
// Guarantee  nothing but normalisations and activation functions is ever recomputed.
// Knob       none.
// Cost       O(nodes).
// Paper      `result.paper.peak_bytes` is the memory of what is kept, the overhead the forward cost
//            of what is dropped.
// Differs    every normalisation and every activation function counts as bn and relu: the networks
//            of the experiment have no others, and later ones have them in the same place. They are
//            told by name (op_price.h); where no operation is one of them, nothing is dropped.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenDropBnRelu(const Problem& problem,
                                                              const SolveLimits& limits);

}  // namespace ckplan
