// The terms of Eq. 2 of Kusumoto et al. 2019 about the neighbours of a lower set L:
//
//   d(L)                      boundary: nodes of L with a successor outside
//   d+(L) \ L                 third term: these successors
//   d-(d+(L)) \ L             fourth term: the other nodes that they read
//
// Counting node by node takes time proportional to the number of neighbours, and a node can have
// all others as neighbours: a Split, a tensor that everything reads, a node that joins everything.
// So the contributions of the node with the most readers and of the node with the most inputs are
// counted by words of 64 nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

// Nodes as bits, with the memory of each word and of all words.
class NodeGroup {
 public:
  explicit NodeGroup(size_t word_count) : words_(word_count), memories_(word_count) {}

  void Add(const VertexGraph& graph, NodeId v);
  bool has(NodeId v) const { return HasNode(words_.data(), v); }

  // O(n / 64) if each word of the group is either entirely in the set or entirely outside.
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

  // Starts another set. Its words must stay valid while its members are visited.
  void Begin(const uint64_t* set);
  // Visits a member of the set, in any order and at most once. Members without a successor outside
  // the set may be skipped. Returns whether the member is in d(L).
  bool Visit(NodeId v);
  // Returns M(d+(L) \ L) + M(d-(d+(L)) \ L) after all members have been visited.
  Bytes memory() const { return memory_; }

 private:
  // The node with the most readers. A sibling outside L is read only by nodes outside L, because L
  // is a lower set.
  struct Hub {
    NodeId node;
    NodeGroup readers;
    NodeGroup siblings;  // The nodes that the readers read.
  };
  // The node with the most inputs.
  struct Join {
    NodeId node;
    NodeGroup inputs;
    NodeGroup inputs_and_siblings;  // Includes the hub's siblings, if there is a hub.
  };
  static std::optional<Hub> FindHub(const VertexGraph& graph);
  static std::optional<Join> FindJoin(const VertexGraph& graph, const std::optional<Hub>& hub);

  bool IsIn(NodeId v) const { return HasNode(set_, v); }
  void CountSuccessor(NodeId successor);

  const VertexGraph& graph_;
  const std::optional<Hub> hub_;
  const std::optional<Join> join_;
  const uint64_t* set_ = nullptr;
  bool has_hub_ = false;                // The set contains the hub, whose readers are counted.
  bool has_join_ = false;               // The third term counts the join.
  const NodeGroup* counted_ = nullptr;  // The group that the fourth term has counted.
  Bytes memory_;
  // The last set for which the third and the fourth term counted each node.
  int64_t set_number_ = 0;
  IdVector<NodeId, int64_t> third_for_;
  IdVector<NodeId, int64_t> fourth_for_;
};

}  // namespace ckplan
