// Where a graph can be cut although it has no splitting vertices: between any two nodes of an order
// in which it can run. The frontier of such a place is what has been computed before it and is read
// behind it; a cut keeps that.
//
//   step of time   0      1      2           Two layers of a recurrent network, unrolled.
//                  ○ ───▶ ○ ───▶ ○           No vertex splits it, for two states go from step to
//                  │      │      │           step; but behind each step the frontier is these two
//                  ▼      ▼      ▼           states, and within a step it is more.
//                  ○ ───▶ ○ ───▶ ○
//
// In a chain, the places of least frontier are behind its splitting vertices.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

struct Frontiers {
  std::vector<NodeId> order;    // Topological.
  std::vector<Bytes> passed;    // The memory of order[0], ..., order[i].
  std::vector<Bytes> frontier;  // That of those which a node behind order[i] reads.
};

// In the order of the graph, which for a network unrolled in a loop over time is step by step.
Frontiers FrontiersInGraphOrder(const VertexGraph& vertices);

// By level, which is step by step also where the loop over time is inside that over layers. A node
// without readers has the level of the longest path to it, any other one less than its first
// reader: the product of a step's own input does not run, and is not kept, from the beginning.
Frontiers FrontiersByLevel(const VertexGraph& vertices);

// Positions in the order behind which to cut, ascending, for k = `segments` segments of about equal
// memory. Cut i lies among the places at which the memory passed is nearer to the i-th multiple of
// 1 / k than to any other, where
//
//   (k - 1) frontier + distance from the multiple
//
// is least: x of Alg. 3 has k - 1 frontiers, and y grows by what a segment has more than the
// others. Of equal places the nearest one, then the first. Where no place is as near there is no
// cut. O(nodes).
std::vector<size_t> CutAtSmallFrontiers(const Frontiers& frontiers, int64_t segments);

}  // namespace ckplan
