// A graph as the list of data that Hong et al. 2024 select checkpoints from: d_0, ..., d_n.
//
//   input x   conv   bn   relu        d_0 is what the graph is given: its inputs, or for a graph
//   d_0       d_1    d_2  d_3         without inputs its first vertex
//
// Every node is one element, in the graph's order. Only splitting vertices can be checkpoints; the
// inner tensors of a block count as segment memory. Both ends are checkpoints: where the graph
// has no splitting vertex there, an empty element is put in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

struct LayerList {
  std::vector<Bytes> sizes;        // d_0, ..., d_n.
  std::vector<size_t> candidates;  // Positions that may be checkpoints, ascending; both ends.
  std::vector<NodeId> nodes;       // Parallel to sizes; none for the inputs and for empty ends.

  // Segment of each node when the graph is cut after every checkpoint. `checkpoints` are
  // positions, ascending, both ends included. Sets the number of segments.
  IdVector<NodeId, int32_t> Cut(const std::vector<size_t>& checkpoints,
                                int32_t* segment_count) const;
  // The forward cost of all nodes but the checkpoints: what the paper recomputes.
  Cost RecomputedTime(const VertexGraph& vertices, const std::vector<size_t>& checkpoints) const;
};

// O(nodes + edges).
LayerList ListLayers(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
