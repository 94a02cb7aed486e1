// What Eq. 2 of Kusumoto et al. 2019 asks about the neighbours of a lower set L:
//
//   d(L)                      boundary: nodes of L with a successor outside
//   d+(L) \ L                 third term: these successors
//   d-(d+(L)) \ L             fourth term: what else they read
//
// Node by node this takes as long as the set has neighbours, and one node can have all others as
// neighbours: a Split, a tensor that everything reads, a node that joins everything. So what the
// most read node and the most reading node contribute is counted by words of 64 nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/algorithms/kusumoto/node_words.h"
#include "lib/base/units.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

// Nodes as bits, with the memory of each word of them and of all.
class NodeGroup {
 public:
  explicit NodeGroup(size_t word_count) : words_(word_count), memories_(word_count) {}

  void Add(const VertexGraph& graph, NodeId v);
  bool has(NodeId v) const { return HasNode(words_.data(), v); }

  // O(n / 64) where each word of the group is in the set as a whole, or not at all.
  Bytes MemoryOutside(const VertexGraph& graph, const uint64_t* set) const;
  bool IsWithin(const uint64_t* set) const;
  bool Intersects(const uint64_t* set) const;

 private:
  std::vector<uint64_t> words_;
  std::vector<Bytes> memories_;
  Bytes total_;
};

class SetNeighbours {
 public:
  explicit SetNeighbours(const VertexGraph& graph);

  // Begins with another set, given as words that stay valid while its members are visited.
  void Begin(const uint64_t* set);
  // Visits a member of the set, each once and in any order; members without a successor outside may
  // be left out. Returns whether the member is in d(L).
  bool Visit(NodeId v);
  // M(d+(L) \ L) + M(d-(d+(L)) \ L), once all members have been visited.
  Bytes memory() const { return memory_; }

 private:
  // The node that most others read. What the readers read, outside of L, has only readers outside.
  struct Hub {
    NodeId node;
    NodeGroup readers;
    NodeGroup siblings;  // What the readers read.
  };
  // The node that reads most others.
  struct Join {
    NodeId node;
    NodeGroup inputs;
    NodeGroup inputs_and_siblings;  // The hub's, if there is one.
  };
  static std::optional<Hub> FindHub(const VertexGraph& graph);
  static std::optional<Join> FindJoin(const VertexGraph& graph, const std::optional<Hub>& hub);

  bool IsIn(NodeId v) const { return HasNode(set_, v); }
  void CountSuccessor(NodeId successor);

  const VertexGraph& graph_;
  const std::optional<Hub> hub_;
  const std::optional<Join> join_;
  const uint64_t* set_ = nullptr;
  bool has_hub_ = false;                // The hub is in the set: its readers are counted.
  bool has_join_ = false;               // The join is among the third term's nodes.
  const NodeGroup* counted_ = nullptr;  // Nodes that the fourth term has counted as a group.
  Bytes memory_;
  // The number of the last set whose third and fourth terms counted a node.
  int64_t set_number_ = 0;
  IdVector<NodeId, int64_t> third_for_;
  IdVector<NodeId, int64_t> fourth_for_;
};

}  // namespace ckplan
