// The chain of a graph: its splitting vertices in order, with what lies between them as blocks.
//
//        ┌─ c ─┐
//   a ─ b      e ─ f        splitting vertices a b e f; blocks {a} {b} {c, d, e} {f}
//        └─ d ─┘
//
// A vertex v splits the graph if no edge leads from a vertex before v to one after it: v is the
// only result that later nodes can need. Chain algorithms may checkpoint splitting vertices and
// nothing else; the inner vertices of a block are segment memory.
//
// Only vertices that need a gradient count. Otherwise a value that is computed from the batch
// without one, such as an attention mask that every layer reads, would leave a transformer without
// any splitting vertex. The nodes that compute such values belong to the first block in which they
// can run.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

struct Chain {
  std::vector<NodeId> splitting;       // Ascending.
  IdVector<NodeId, int32_t> block_of;  // Block i ends with splitting[i]; nodes after the last one
                                       // form one more.
  int32_t block_count = 0;
};

// Returns whether an output of the node needs a gradient.
bool NeedsGradient(const TensorGraph& graph, NodeId id);

// O(nodes + edges).
Chain FindChain(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
