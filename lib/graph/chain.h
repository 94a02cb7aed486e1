// The chain of a graph: its splitting vertices in order, with what lies between them as blocks.
//
//        ┌─ c ─┐
//   a ─ b      e ─ f        splitting vertices a b e f; blocks {a} {b} {c, d, e} {f}
//        └─ d ─┘
//
// A vertex v splits the graph if no edge leads from a vertex before v to one behind it: v is the
// only result that later nodes can need. Chain algorithms may checkpoint splitting vertices and
// nothing else; the inner vertices of a block are segment memory.
//
// Only vertices that need a gradient count. What is computed from the batch without one,
// such as an attention mask that every layer reads, would otherwise leave a transformer without
// any splitting vertex; those few nodes belong to the first block that they can run in.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

struct Chain {
  std::vector<NodeId> splitting;       // Ascending.
  IdVector<NodeId, int32_t> block_of;  // Block i ends with splitting[i]; one more if nodes follow.
  int32_t block_count = 0;
};

// Whether an output of the node needs a gradient.
bool NeedsGradient(const TensorGraph& graph, NodeId id);

// O(nodes + edges).
Chain FindChain(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
