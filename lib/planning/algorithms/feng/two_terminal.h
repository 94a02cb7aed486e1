// The graph as in Feng & Huang 2019: one source, one target, and only vertices that a segment of
// the backward pass can contain.
//
//   x ── conv ── bn ── relu ── ...        vertices: {conv} {bn, relu}
//                  relu writes in place of bn's output
//
// Differences from VertexGraph:
//   - Nodes without a gradient are not vertices. They are always kept.
//   - An operation that writes in place shares the vertex of the tensor it overwrites ("every edge
//     is a non-inplace operation"): the overwritten tensor is not counted.
//   - A graph with several sources or targets is given the single source and target that the theory
//     requires. An extra source is tied to the splitting vertex before it, an extra target to the
//     one after it (lib/problem/graph/vertex_graph.h), so that a state which every layer returns
//     does not keep the graph from being cut between layers. If there is no such splitting vertex,
//     a virtual source or target of size 0 joins them. These ties order the computation and carry
//     no data: a division that is valid with them is valid without.
//   - The graph's inputs form the source: they always exist and have size 0 here.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

using VertexId = Id<struct TwoTerminalVertexKind>;

struct TwoTerminalGraph {
  struct Vertex {
    std::vector<NodeId> nodes;  // Ascending; the last one writes the tensor that others read. Empty
                                // if virtual.
    Bytes memory;
    std::vector<VertexId> successors;    // Ascending, each once.
    std::vector<VertexId> predecessors;  // Ascending, each once.
  };
  IdVector<VertexId, Vertex> vertices;  // In topological order: the source first, the target last.
  Bytes memory_aside;  // Memory of the nodes without a gradient that vertices read.

  VertexId source() const { return VertexId(0); }
  VertexId target() const { return VertexId(vertices.size() - 1); }
  bool is_virtual(VertexId v) const { return vertices[v].nodes.empty(); }
};

// O(nodes + edges).
TwoTerminalGraph MakeTwoTerminal(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
