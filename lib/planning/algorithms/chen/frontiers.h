// A graph without splitting vertices can be cut as well: between any two nodes of an order in which
// it can run. The frontier of such a place is the set of results that are computed before it and
// read after it; a cut keeps them.
//
//   time step      0      1      2           Two layers of a recurrent network, unrolled.
//                  ○ ───▶ ○ ───▶ ○           No vertex splits it, since two states go from step to
//                  │      │      │           step. After each step the frontier is these two
//                  ▼      ▼      ▼           states; within a step it is larger.
//                  ○ ───▶ ○ ───▶ ○
//
// In a chain, the places of least frontier are those after its splitting vertices.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

struct Frontiers {
  std::vector<NodeId> order;    // A topological order.
  std::vector<Bytes> passed;    // The memory of order[0], ..., order[i].
  std::vector<Bytes> frontier;  // Bytes of order[0], ..., order[i] that a node after order[i]
                                // reads.
};

// Uses the order of the graph, which for a network unrolled in a loop over time is step by step.
Frontiers FrontiersInGraphOrder(const VertexGraph& vertices);

// Orders the nodes by level, which is step by step even if the loop over time is inside the loop
// over layers. The level of a node without readers is the length of the longest path to it; any
// other node is one level below its first reader. So the product of a time step's input, which
// depends on no earlier step, is not computed and kept from the beginning.
Frontiers FrontiersByLevel(const VertexGraph& vertices);

// Returns the positions in the order after which to cut, ascending, for k = `segments` segments of
// about equal memory. Cut i lies among the places whose passed memory is nearer to the i-th
// multiple of 1 / k than to any other multiple. Among them it minimises
//
//   (k - 1) frontier + distance from the multiple,
//
// since x of Alg. 3 has k - 1 frontiers, and y grows by the excess of a segment over the others.
// Among equal places it takes the nearest one, then the first. If no place is that near, the cut is
// left out. O(nodes).
std::vector<size_t> CutAtSmallFrontiers(const Frontiers& frontiers, int64_t segments);

}  // namespace ckplan
