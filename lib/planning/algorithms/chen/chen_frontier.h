// Segments of about equal memory, cut where few bytes cross: in an unrolled recurrent network,
// between time steps.
//
//   Chen, Xu, Zhang, Guestrin. "Training Deep Nets with Sublinear Memory Cost", 2016, sections 4.3
//   and 5.3.
//
// Idea. The paper's experiment with a four-layer LSTM divides the network over time. No single
// result splits it there, because the states of all layers pass from step to step. So a cut may
// keep several results, the frontier, and may lie between any two nodes.
//
//   cost-total = largest segment + (k - 1) frontiers of F bytes each,        (Eq. 1)
//
// For a graph of S bytes, this is lowest at about k = sqrt(S / F): sqrt(n) for n equal layers,
// where the frontier is one layer.
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
//            the order by level (chen_frontier.h says why). For each k the order with less x + y is
//            taken, the graph's own if they are equal. Names and kinds of operations do not matter.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

// Any graph can be cut between two nodes of a topological order, even without splitting vertices.
// The frontier of such a place is the set of results that are computed before it and read after it;
// a cut keeps them.
//
//   time step      0      1      2           Two layers of a recurrent network, unrolled.
//                  ○ ───▶ ○ ───▶ ○           No vertex splits it, since two states go from step to
//                  │      │      │           step. After each step the frontier is these two
//                  ▼      ▼      ▼           states; within a step it is larger.
//                  ○ ───▶ ○ ───▶ ○
//
// In a chain, the places with the smallest frontiers follow its splitting vertices.
struct Frontiers {
  std::vector<NodeId> order;    // A topological order.
  std::vector<Bytes> passed;    // The memory of order[0], ..., order[i].
  std::vector<Bytes> frontier;  // Bytes of order[0], ..., order[i] that a node after order[i]
                                // reads.
};

// Uses the order of the graph. For a network unrolled in a loop over time, that is step by step.
Frontiers FrontiersInGraphOrder(const VertexGraph& vertices);

// Orders the nodes by level. That is step by step even if the loop over time is inside the loop
// over layers. The level of a node without readers is the length of the longest path to it; any
// other node is one level below its first reader. This keeps the product of a time step's input,
// which depends on no earlier step, from being computed at the start and kept.
Frontiers FrontiersByLevel(const VertexGraph& vertices);

// Returns the positions in the order after which to cut, ascending, for k = `segments` segments of
// about equal memory. Cut i lies among the places where the memory passed is nearer to the i-th
// multiple of 1 / k than to any other multiple. Among these it minimises
//
//   (k - 1) frontier + distance from the multiple,
//
// because x of Alg. 3 has k - 1 frontiers, and y grows by the excess of a segment over the others.
// Ties go to the nearest place, then to the first. A cut without such a place is left out.
// O(nodes).
std::vector<size_t> CutAtSmallFrontiers(const Frontiers& frontiers, int64_t segments);

Result<std::unique_ptr<PreparedSolver>> PrepareChenFrontier(const Problem& problem,
                                                            const SolveLimits& limits);

}  // namespace ckplan
