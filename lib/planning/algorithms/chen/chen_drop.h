// Plans that drop the results of cheap operations.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/planning/plan/solver.h"

namespace ckplan {

// Drops the results of batch normalisations and ReLUs, and keeps all others.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 5.1:
//   "drop bn-relu, apply all system optimizations, drop result of batch norm and relu".
//
// Idea. As in chen-drop-cheap (section 4.2), but pooling is kept, as in the experiment on
// convolutional networks (Fig. 5). In conv - bn - relu, only the convolution's result is kept.
//
// Guarantee  only normalisations and activation functions are ever recomputed.
// Knob       none.
// Cost       O(nodes).
// Paper      `result.paper.peak_bytes` is the memory of kept results, the overhead is the forward
//            cost of dropped ones.
// Differs    every normalisation and every activation function counts as bn and relu: the networks
//            of the experiment have no others, and later ones have them in the same place. They are
//            recognised by name (chen_drop.h); if there are none, nothing is dropped.
Result<std::unique_ptr<PreparedSolver>> PrepareChenDropBnRelu(const Problem& problem,
                                                              const SolveLimits& limits);

// Drops the results of cheap operations, and keeps those of costly ones.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, section 4.2.
//   "Drop bn-relu" in its experiments keeps pooling: see chen-drop-bn-relu.
//
// Idea. A normalisation, an activation function or a pooling costs next to nothing compared with a
// convolution, yet its result is as large. Drop these results, keep the others, and recompute on
// demand.
//
// Guarantee  convolutions, matrix products, recurrent layers and attention are never recomputed.
// Knob       none.
// Cost       O(nodes).
// Paper      `result.paper.peak_bytes` is the memory of kept results, the overhead is the forward
//            cost of dropped ones.
// Differs    the text names batch normalisation, activation functions and pooling in convolutional
//            networks, and leaves everything else open:
//            - operations are judged by name (chen_drop.h); dropout counts as cheap, since its seed
//              is replayed.
//            - additions, concatenations and unknown operations are kept. If the additions of a
//              residual network were dropped, its first backward step would have to recompute
//              the whole stream of them, and hold it.
//            - in a graph without cheap or costly names, such as one without names, cost decides:
//              nodes that cost less than the average are dropped.
Result<std::unique_ptr<PreparedSolver>> PrepareChenDropCheap(const Problem& problem,
                                                             const SolveLimits& limits);

// Shared by chen-drop-cheap and chen-drop-bn-relu: a plan that keeps some results from their
// forward run, and recomputes the others on demand.

// Builds the plan. `result.paper` has the memory of kept results, and the forward cost of dropped
// ones.
SolveOutcome PlanOfKept(const Problem& problem, IdVector<NodeId, bool> is_kept,
                        std::string guarantee);

// Tells from an operation's name how costly it is to recompute; for Chen et al. 2016, section 4.2.
enum class OpPrice {
  kNormOrActivation,  // A normalisation or an activation function.
  kOtherCheap,  // Pooling, dropout or an elementwise function: much cheaper than a convolution.
  kCostly,      // A convolution, matrix product, recurrent layer or attention.
  kUnknown,
};

// Looks up an ONNX operator in the table of lib/problem/ops, and judges another framework's
// operator by its name: it is cheap if norm, relu, pool, sigmoid, ... occur in the name, unless a
// costly operation does as well ("Conv+Relu").
OpPrice PriceOf(std::string_view op);

}  // namespace ckplan
