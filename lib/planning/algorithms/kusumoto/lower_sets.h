// Families of lower sets: sets of nodes that contain all predecessors of their members.
//
//   a → b → d     lower sets: {} {a} {a,b} {a,c} {a,b,c} {a,b,c,d}
//   a → c → d     closures L^v: {a} {a,b} {a,c} {a,b,c,d}
//
// The dynamic programs of Kusumoto et al. 2019 run over one of two families: all lower sets
// (exact-dp), whose number can be exponential in the width of the graph, or the closures L^v = {w :
// v is reachable from w}, one per node (approx-dp). A family stores the facts that the recurrences
// need for each member; SubsetFinder lists the subsets of a member without a table of all pairs.
//
// In the family of all lower sets, a word tests 64 candidates at once. A subset of a lower set L
// contains none of the nodes that could be added to L next, such as c for {a,b}. Every other lower
// set contains one of these nodes: the first in order of its nodes outside L. So each node has one
// bit per set that contains it, and the subsets of L are the sets whose bit is clear for all of
// these few nodes.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

// Sets of nodes as words of 64 bits: node i is bit i % 64 of word i / 64.
inline constexpr size_t kWordBits = 64;

inline size_t WordCount(size_t node_count) { return (node_count + kWordBits - 1) / kWordBits; }
inline size_t WordOf(NodeId v) { return static_cast<size_t>(v.index()) / kWordBits; }
inline uint64_t BitOf(NodeId v) {
  return uint64_t{1} << (static_cast<size_t>(v.index()) % kWordBits);
}
// Returns the node of the lowest set bit.
inline NodeId NodeAt(size_t word, uint64_t bits) {
  return NodeId(word * kWordBits + static_cast<size_t>(std::countr_zero(bits)));
}
inline void Flip(uint64_t* words, NodeId v) { words[WordOf(v)] ^= BitOf(v); }
inline bool HasNode(const uint64_t* words, NodeId v) { return (words[WordOf(v)] & BitOf(v)) != 0; }

// Limits a search by a stop request and a number of elementary steps. Unlike seconds, steps give
// the same errors on every machine.
struct DpLimits {
  std::stop_token stop;
  int64_t max_transitions = 0;  // State transitions tried; 0 means no limit.
  int threads = 0;              // 0 means the number of processor cores, up to four.
};

// Counts work against the limits of a call. Thread-safe.
class WorkMeter {
 public:
  // Keeps a reference to `limits`. Errors report `lower_sets` as the number of sets.
  WorkMeter(int32_t lower_sets, const DpLimits& limits)
      : lower_sets_(lower_sets), limits_(limits) {}

  void Add(int64_t transitions) { transitions_.fetch_add(transitions, std::memory_order_relaxed); }

  int64_t transitions() const { return transitions_.load(std::memory_order_relaxed); }

  // kTimeout: stopped. kUnsupported: more transitions than allowed.
  Result<Done> Check() const;
  bool is_over() const;

 private:
  bool exceeds_limit() const {
    return limits_.max_transitions > 0 && transitions() > limits_.max_transitions;
  }

  const int32_t lower_sets_;
  const DpLimits& limits_;
  std::atomic<int64_t> transitions_ = 0;
};

class LowerSetFamily {
 public:
  // Returns every lower set, including the empty one and V. Counts the sets before storing any.
  // kUnsupported: more than `max_count` sets. kTimeout: stopped. Takes O(S x width) time for S
  // lower sets, and twice S times n / 64 words.
  static Result<LowerSetFamily> All(const VertexGraph& graph, int64_t max_count,
                                    const DpLimits& limits = {});

  // Returns the empty set, every closure L^v, and V (which is not a closure if there are several
  // sinks). With more than `max_closures` nodes, takes one closure from each `stride()` consecutive
  // nodes: that of the node after which the least memory is still to be read. Takes fewer if
  // boundaries are so wide that visiting all pairs of closures would take more than a few seconds.
  // O(S n / 64) memory.
  static Result<LowerSetFamily> Closures(const VertexGraph& graph, int64_t max_closures,
                                         const DpLimits& limits = {});

  // Returns the same members with the same numbers, but the times of another graph with the same
  // nodes. Shares the bits of the members.
  LowerSetFamily WithTimes(const VertexGraph& graph) const;

  // Members are numbered by ascending memory M(L), then by ascending size, so a set comes after its
  // subsets: 0 is the empty set, size() - 1 is V.
  int32_t size() const { return static_cast<int32_t>(facts_.size()); }
  int64_t stride() const { return stride_; }

  bool contains(int32_t set, NodeId v) const { return HasNode(words(set), v); }
  const uint64_t* words(int32_t set) const {
    return bits_->data() + static_cast<size_t>(set) * words_per_set_;
  }

  // Visits the members of a set in ascending order.
  template <typename Visit>
  void ForEachMember(int32_t set, Visit visit) const {
    for (size_t w = 0; w < words_per_set_; ++w) {
      for (uint64_t word = words(set)[w]; word != 0; word &= word - 1) {
        visit(NodeAt(w, word));
      }
    }
  }

  struct Facts {
    Bytes memory;           // M(L), the memory of the set.
    Cost time;              // T(L), the forward time of the set.
    Bytes neighbours;       // M(d+(L) \ L) + M(d-(d+(L)) \ L): terms (iii) and (iv) of Eq. 2.
    Bytes boundary_memory;  // M(d(L)), the memory of the boundary.
    Cost boundary_time;     // T(d(L)), the forward time of the boundary.
    int32_t size = 0;       // The number of members.
  };
  const Facts& facts(int32_t set) const { return facts_[static_cast<size_t>(set)]; }
  const Facts& whole() const { return facts_.back(); }

  // Copies of some facts, stored contiguously for loops over many sets.
  Bytes memory(int32_t set) const { return memories_[static_cast<size_t>(set)]; }
  Bytes boundary_memory(int32_t set) const { return boundary_memories_[static_cast<size_t>(set)]; }
  int32_t size_of(int32_t set) const { return sizes_[static_cast<size_t>(set)]; }

  // M and T of d(L') ∩ L for a subset L of L'.
  struct Overlap {
    Bytes memory;
    Cost time;
  };
  Overlap BoundaryWithin(int32_t larger, int32_t smaller) const {
    int64_t memory = 0;  // Both sums are at most those of V, which TensorGraph::Create bounds.
    int64_t time = 0;
    const uint64_t* members = words(smaller);
    for (uint32_t i = boundary_starts_[static_cast<size_t>(larger)];
         i < boundary_starts_[static_cast<size_t>(larger) + 1]; ++i) {
      const BoundaryWord& word = boundary_[i];
      uint64_t inside = members[word.word] & word.bits;
      if (inside == word.bits) {
        memory += word.memory.count();
        time += word.time.count();
        continue;
      }
      for (; inside != 0; inside &= inside - 1) {
        const NodeId v = NodeAt(word.word, inside);
        memory += node_memories_[v].count();
        time += node_times_[v].count();
      }
    }
    return {Bytes(memory), Cost(time)};
  }

  // Returns the node whose closure the member is; none for the empty set, and for V if it is not a
  // closure. Families from All() have none, but have the data of the next three functions.
  NodeId closed_node(int32_t set) const { return closed_nodes_[static_cast<size_t>(set)]; }

  bool has_all() const { return !addition_starts_.empty(); }
  // For All(): returns the nodes outside the set whose predecessors are all inside it.
  std::span<const NodeId> additions(int32_t set) const {
    const auto i = static_cast<size_t>(set);
    return {additions_.data() + addition_starts_[i], addition_starts_[i + 1] - addition_starts_[i]};
  }
  // For All(): bit i % 64 of word i / 64 tells whether member i contains the node.
  const uint64_t* sets_with(NodeId v) const {
    return sets_with_.data() + static_cast<size_t>(v.index()) * WordCount(facts_.size());
  }

  // Returns the first member with at least this memory.
  int32_t FirstWithMemory(Bytes min_memory, int32_t end) const {
    return static_cast<int32_t>(
        std::lower_bound(memories_.begin(), memories_.begin() + end, min_memory) -
        memories_.begin());
  }

 private:
  // The nodes of a boundary that lie in one word, with their sums.
  struct BoundaryWord {
    uint32_t word;
    uint64_t bits;
    Bytes memory;
    Cost time;
  };
  struct Words;  // The sums of each word of 64 nodes.

  explicit LowerSetFamily(const VertexGraph& graph);
  void AddToBoundary(NodeId v);
  static Result<std::optional<LowerSetFamily>> SomeClosures(const VertexGraph& graph,
                                                            int64_t max_closures,
                                                            const DpLimits& limits);
  Result<bool> ComputeFacts(const VertexGraph& graph, int64_t max_pair_work,
                            const DpLimits& limits);
  void FindSetsWithEachNode(size_t node_count);
  std::vector<size_t> SortByMemory(const VertexGraph& graph, std::vector<uint64_t> bits);

  size_t words_per_set_;
  int64_t stride_ = 1;
  std::shared_ptr<const std::vector<uint64_t>> bits_;
  std::vector<Facts> facts_;
  std::vector<Bytes> memories_;
  std::vector<Bytes> boundary_memories_;
  std::vector<int32_t> sizes_;
  IdVector<NodeId, Bytes> node_memories_;
  IdVector<NodeId, Cost> node_times_;
  std::vector<BoundaryWord> boundary_;  // The words of set i are at [starts[i], starts[i + 1]).
  std::vector<uint32_t> boundary_starts_;
  std::vector<NodeId> additions_;  // The nodes of set i are at [starts[i], starts[i + 1]).
  std::vector<size_t> addition_starts_;
  std::vector<uint64_t> sets_with_;
  std::vector<NodeId> closed_nodes_;
};

// A subset of a family's members, in ascending order.
struct SetSelection {
  SetSelection() = default;
  explicit SetSelection(const LowerSetFamily& family) : SetSelection(family, AllOf(family)) {}
  SetSelection(const LowerSetFamily& family, std::vector<int32_t> ascending);

  bool empty() const { return sets.empty(); }
  // Returns all sets except the empty one, which comes first.
  std::span<const int32_t> after_first() const { return std::span(sets).subspan(1); }

  std::vector<int32_t> sets;
  std::vector<uint64_t> bits;  // One bit for each member of the family.

 private:
  static std::vector<int32_t> AllOf(const LowerSetFamily& family);
};

// Lists the subsets of a member. Each thread needs its own finder.
class SubsetFinder {
 public:
  // Keeps a reference to `family`.
  explicit SubsetFinder(const LowerSetFamily& family) : family_(family) {}

  // Visits each selected proper subset L of `set` with M(set \ L) <= `max_between` for which
  // `is_relevant(L)` holds, in ascending order. Calls `is_relevant` only for smaller sets, so
  // threads can work on sets of the same size. Returns the number of sets inspected, which does not
  // depend on `is_relevant`.
  template <typename IsRelevant, typename Visit>
  int64_t ForEach(int32_t set, Bytes max_between, const SetSelection& selected,
                  IsRelevant is_relevant, Visit visit);

 private:
  template <typename IsRelevant, typename Visit>
  int64_t AmongAll(int32_t set, int32_t first, const SetSelection& selected, IsRelevant is_relevant,
                   Visit visit);
  template <typename IsRelevant, typename Visit>
  int64_t AmongClosures(int32_t set, int32_t first, const SetSelection& selected,
                        IsRelevant is_relevant, Visit visit);

  const LowerSetFamily& family_;
  std::vector<uint64_t> strays_;  // Bits of the sets that are not subsets.
};

template <typename IsRelevant, typename Visit>
int64_t SubsetFinder::ForEach(int32_t set, Bytes max_between, const SetSelection& selected,
                              IsRelevant is_relevant, Visit visit) {
  // All subsets have numbers in a window that ends before `set`.
  const int32_t first = family_.FirstWithMemory(family_.memory(set) - max_between, set);
  return family_.has_all() ? AmongAll(set, first, selected, is_relevant, visit)
                           : AmongClosures(set, first, selected, is_relevant, visit);
}

template <typename IsRelevant, typename Visit>
int64_t SubsetFinder::AmongAll(int32_t set, int32_t first, const SetSelection& selected,
                               IsRelevant is_relevant, Visit visit) {
  const size_t begin = static_cast<size_t>(first) / kWordBits;
  const size_t end = WordCount(static_cast<size_t>(set));
  if (begin >= end) return 0;
  strays_.assign(end - begin, 0);
  for (const NodeId v : family_.additions(set)) {
    const uint64_t* with = family_.sets_with(v) + begin;
    for (size_t w = 0; w < strays_.size(); ++w) strays_[w] |= with[w];
  }
  strays_.front() |= ~(~uint64_t{0} << (static_cast<size_t>(first) % kWordBits));
  if (const size_t rest = static_cast<size_t>(set) % kWordBits; rest != 0) {
    strays_.back() |= ~uint64_t{0} << rest;
  }
  auto looked_at = static_cast<int64_t>(strays_.size());
  for (size_t w = begin; w < end; ++w) {
    uint64_t found = selected.bits[w] & ~strays_[w - begin];
    for (; found != 0; found &= found - 1) {
      ++looked_at;
      const auto below =
          static_cast<int32_t>(w * kWordBits + static_cast<size_t>(std::countr_zero(found)));
      if (is_relevant(below)) visit(below);
    }
  }
  return looked_at;
}

template <typename IsRelevant, typename Visit>
int64_t SubsetFinder::AmongClosures(int32_t set, int32_t first, const SetSelection& selected,
                                    IsRelevant is_relevant, Visit visit) {
  const auto begin = std::lower_bound(selected.sets.begin(), selected.sets.end(), first);
  const auto end = std::lower_bound(begin, selected.sets.end(), set);
  const int32_t size = family_.size_of(set);
  for (const int32_t below : std::span(begin, end)) {
    if (family_.size_of(below) >= size || !is_relevant(below)) continue;
    if (below == 0 || family_.contains(set, family_.closed_node(below))) visit(below);
  }
  return end - begin;
}

}  // namespace ckplan
