// The papers' view of a TensorGraph: one vertex per node.
//
//   M_v = bytes of the node's outputs      T_v = forward cost of the node
//   edge (v, w) if w reads an output of v
//
// A vertex has the id of its node, so vertex ids are a topological order, and NodeSet and per-node
// vectors work with both views.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

class VertexGraph {
 public:
  explicit VertexGraph(const TensorGraph& graph);

  size_t size() const { return memory_.size(); }
  IdRange<NodeId> ids() const { return memory_.ids(); }
  Bytes memory(NodeId v) const { return memory_[v]; }  // M_v
  Cost time(NodeId v) const { return time_[v]; }       // T_v
  Bytes total_memory() const { return total_memory_; }
  Cost total_time() const { return total_time_; }

  // Ascending and unique.
  std::span<const NodeId> successors(NodeId v) const { return successors_.of(v); }
  std::span<const NodeId> predecessors(NodeId v) const { return predecessors_.of(v); }

  // Returns a copy with other times, for example rounded to a coarser unit.
  VertexGraph WithTimes(IdVector<NodeId, Cost> time) const;

 private:
  // Adjacency lists in one array: the list of v is at [starts[v], starts[v + 1]).
  struct Adjacency {
    std::vector<NodeId> targets;
    std::vector<size_t> starts;
    std::span<const NodeId> of(NodeId v) const {
      const size_t i = static_cast<size_t>(v.index());
      return {targets.data() + starts[i], starts[i + 1] - starts[i]};
    }
  };
  static Adjacency Pack(const IdVector<NodeId, std::vector<NodeId>>& lists);

  IdVector<NodeId, Bytes> memory_;
  IdVector<NodeId, Cost> time_;
  Bytes total_memory_;
  Cost total_time_;
  Adjacency successors_;
  Adjacency predecessors_;
};

// The chain of a graph: its splitting vertices, and the blocks of vertices between them.
//
//        ┌─ c ─┐
//   a ─ b      e ─ f        splitting vertices a b e f; blocks {a} {b} {c, d, e} {f}
//        └─ d ─┘
//
// A vertex v splits the graph if no edge leads from a vertex before v to one after v, so that later
// nodes need no earlier result except v's. Chain algorithms checkpoint only splitting vertices; the
// inner vertices of a block are segment memory.
//
// Only vertices that need a gradient count. Otherwise, a value without a gradient that every layer
// reads, such as an attention mask, would leave a transformer without splitting vertices. Nodes
// that compute such values belong to the first block in which they can run.
struct Chain {
  std::vector<NodeId> splitting;       // Ascending.
  IdVector<NodeId, int32_t> block_of;  // Block i ends with splitting[i]; later nodes form another.
  int32_t block_count = 0;
};

// Returns true if an output of the node needs a gradient.
bool NeedsGradient(const TensorGraph& graph, NodeId id);

// O(nodes + edges).
Chain FindChain(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
