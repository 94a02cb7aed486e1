// Segments of about equal memory, cut where few bytes cross the cut: in an unrolled recurrent
// network, between time steps.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, sections 4.3
//   and 5.3.
//
// Idea. The paper's experiment with an LSTM of four layers divides the network over time. No single
// result splits it there, since the states of all layers go from step to step. So a cut may keep
// several results, the frontier of frontiers.h, and may lie between any two nodes.
//
//   cost-total = largest segment + (k - 1) frontiers of F bytes each,        (Eq. 1)
//
// For a graph of S bytes this is least at about k = sqrt(S / F): sqrt(n) for n equal layers, whose
// frontier is one layer.
//
// Guarantee  none. On a network of n equal steps O(sqrt n) memory, at most one extra forward pass.
// Knob       k, the number of segments. Without a budget round(sqrt(S / F)), where F is the
//            frontier at which two segments are cut, or the mean result if that is larger.
// Cost       O(nodes + edges) for each k, plus sorting once.
// Paper      x is the sum of all kept results, y the largest segment with the results it keeps
//            (Alg. 3): `result.paper.peak_bytes` is x + y, and the overhead is the cost of every
//            node that is not kept.
// Differs    section 5.3 says that the LSTM is planned by Alg. 3 and leaves its candidates C open.
//            Here every position in two orders of the nodes is a candidate: the graph's order and
//            the order by level (frontiers.h says why). For each k the order with less x + y is
//            taken, the graph's own if they are equal. Names and kinds of operations do not matter.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenFrontier(const Problem& problem,
                                                            const SolveLimits& limits);

}  // namespace ckplan
