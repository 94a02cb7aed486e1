// A graph as the list of data that Hong et al. 2024 select checkpoints from: d_0, ..., d_n.
//
//   input x   conv   bn   relu        d_0 is the graph's inputs, or for a graph
//   d_0       d_1    d_2  d_3         without inputs its first vertex
//
// Every node is one element, in the graph's order. Only splitting vertices can be checkpoints; the
// inner tensors of a block count as segment memory. Both ends are checkpoints: at an end without a
// splitting vertex, an empty element is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

struct LayerList {
  std::vector<Bytes> sizes;        // d_0, ..., d_n.
  std::vector<size_t> candidates;  // Positions that may be checkpoints, ascending, with both ends.
  std::vector<NodeId> nodes;       // Parallel to sizes; none for the inputs and for empty ends.

  // Returns the segment of each node if the graph is cut after every checkpoint, and sets the
  // number of segments. `checkpoints` holds positions, ascending, with both ends.
  IdVector<NodeId, int32_t> Cut(const std::vector<size_t>& checkpoints,
                                int32_t* segment_count) const;
  // Returns the forward cost of all nodes except the checkpoints: the cost that the paper
  // recomputes.
  Cost RecomputedTime(const VertexGraph& vertices, const std::vector<size_t>& checkpoints) const;
};

// O(nodes + edges).
LayerList ListLayers(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
