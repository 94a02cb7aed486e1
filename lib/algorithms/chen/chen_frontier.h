// Segments of about equal memory, cut where little crosses the cut: in an unrolled recurrent
// network between steps of time.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, sections 4.3
//   and 5.3.
//
// Idea. The paper's experiment with an LSTM of four layers divides the network over time, where no
// single result splits it: the states of all layers go from step to step. So a cut may keep more
// than one result, the frontier of frontiers.h, and may lie between any two nodes.
//
//   cost-total = largest segment + (k - 1) frontiers of F bytes each,        (Eq. 1)
//
// which for a graph of S bytes is least at about k = sqrt(S / F): sqrt(n) for n equal layers, whose
// frontier is one of them.
//
// Guarantee  none. On a network of n equal steps O(sqrt n) memory, one extra forward pass at most.
// Knob       k, the number of segments. Without a budget round(sqrt(S / F)), with F the frontier at
//            which two segments are cut, or the mean result if that is larger.
// Cost       O(nodes + edges) for each k, and sorting once.
// Paper      x, the sum of what is kept, each result once, and y, the largest segment with what it
//            keeps (Alg. 3): `result.paper.peak_bytes` is x + y, the overhead that of every node
//            not kept.
// Differs    section 5.3 says that the LSTM is planned by Alg. 3 and leaves its candidates C open.
//            Here every place in two orders of the nodes is one, that of the graph and that by
//            level (frontiers.h says why); for each k the order of less x + y is taken, the
//            graph's own if they are equal. Names and kinds of operations do not matter.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareChenFrontier(const Problem& problem,
                                                            const SolveLimits& limits);

}  // namespace ckplan
