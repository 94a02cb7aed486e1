// The graph as Feng & Huang 2019 see it: one source, one target, and only what a segment of the
// backward pass can be made of.
//
//   x ── conv ── bn ── relu ── ...        vertices: {conv} {bn, relu}
//                  relu writes in place of bn's output
//
// What differs from the VertexGraph:
//   - Nodes that need no gradient are no vertices. They are kept, and never recomputed.
//   - An operation that writes in place shares the vertex of what it overwrites ("every edge is a
//     non-inplace operation"): the overwritten tensor is not counted.
//   - A graph with several sources or targets gets the one of each that the theory asks for. An
//     extra source is tied to the splitting vertex before it, an extra target to the one behind
//     it (chain.h), so that a state which every layer returns does not stop the graph from being
//     cut between layers. Where
//     there is none, a virtual source or target of no size joins them.
//     Such ties order the computation and carry no data: what is valid with them is valid without.
//   - What the graph reads from outside is the source: it is always there and has no size here.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

using VertexId = Id<struct TwoTerminalVertexKind>;

struct TwoTerminalGraph {
  struct Vertex {
    std::vector<NodeId> nodes;  // Ascending; the last one writes what others read. Virtual: none.
    Bytes memory;
    std::vector<VertexId> successors;    // Ascending, each once.
    std::vector<VertexId> predecessors;  // Ascending, each once.
  };
  IdVector<VertexId, Vertex> vertices;  // In topological order: the source first, the target last.
  Bytes memory_aside;                   // Nodes without a gradient that a vertex reads.

  VertexId source() const { return VertexId(0); }
  VertexId target() const { return VertexId(vertices.size() - 1); }
  bool is_virtual(VertexId v) const { return vertices[v].nodes.empty(); }
};

// O(nodes + edges).
TwoTerminalGraph MakeTwoTerminal(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
