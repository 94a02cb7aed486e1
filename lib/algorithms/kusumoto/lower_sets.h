// Families of lower sets: sets of nodes that contain all predecessors of their members.
//
//   a → b → d     lower sets: {} {a} {a,b} {a,c} {a,b,c} {a,b,c,d}
//   a → c → d     closures L^v: {a} {a,b} {a,c} {a,b,c,d}
//
// The dynamic programs of Kusumoto et al. 2019 run over one of two families: all lower sets
// (exact-dp), whose number can be exponential in the width of the graph, or the closures
// L^v = {w : v is reachable from w}, one per node (approx-dp). A family knows for each member what
// the recurrences need; SubsetFinder lists the subsets of a member without any table of all pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/algorithms/kusumoto/node_words.h"
#include "lib/algorithms/kusumoto/work_meter.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

class LowerSetFamily {
 public:
  // Every lower set, the empty one and V included. They are counted before any is stored:
  // kUnsupported when there are more than `max_count`. O(S x width) time for S lower sets; S times
  // n / 64 words. kTimeout: stopped.
  static Result<LowerSetFamily> All(const VertexGraph& graph, int64_t max_count,
                                    const DpLimits& limits = {});

  // The empty set, every closure L^v, and V (which is no closure if there are several sinks). Of
  // more than `max_closures` nodes only some are taken: one of every `stride()` that follow each
  // other, the one after which the least memory is still to be read; and of fewer where boundaries
  // are so wide that looking at all pairs of closures would take more than some seconds. O(S n /
  // 64) memory.
  static Result<LowerSetFamily> Closures(const VertexGraph& graph, int64_t max_closures,
                                         const DpLimits& limits = {});

  // The same members, numbered alike, with the times of another graph of the same nodes. Shares the
  // bits of the members.
  LowerSetFamily WithTimes(const VertexGraph& graph) const;

  // Members are numbered by ascending memory M(L), sets of equal memory by ascending size, so that
  // a set comes after its subsets: 0 is the empty set, size() - 1 is V.
  int32_t size() const { return static_cast<int32_t>(facts_.size()); }
  size_t words_per_set() const { return words_per_set_; }
  int64_t stride() const { return stride_; }

  bool contains(int32_t set, NodeId v) const { return HasNode(words(set), v); }
  const uint64_t* words(int32_t set) const {
    return bits_->data() + static_cast<size_t>(set) * words_per_set_;
  }

  // Visits the members of a set, ascending.
  template <typename Visit>
  void ForEachMember(int32_t set, Visit visit) const {
    for (size_t w = 0; w < words_per_set_; ++w) {
      for (uint64_t word = words(set)[w]; word != 0; word &= word - 1) {
        visit(NodeAt(w, word));
      }
    }
  }

  struct Facts {
    Bytes memory;           // M(L)
    Cost time;              // T(L)
    Bytes neighbours;       // M(d+(L) \ L) + M(d-(d+(L)) \ L): terms (iii) and (iv) of Eq. 2.
    Bytes boundary_memory;  // M(d(L))
    Cost boundary_time;     // T(d(L))
    int32_t size = 0;       // Number of members.
  };
  const Facts& facts(int32_t set) const { return facts_[static_cast<size_t>(set)]; }
  const Facts& whole() const { return facts_.back(); }

  // Some of the facts once more, close together for loops over many sets.
  Bytes memory(int32_t set) const { return memories_[static_cast<size_t>(set)]; }
  Bytes boundary_memory(int32_t set) const { return boundary_memories_[static_cast<size_t>(set)]; }
  int32_t size_of(int32_t set) const { return sizes_[static_cast<size_t>(set)]; }

  // M and T of d(L') ∩ L, for a subset L of L'.
  struct Overlap {
    Bytes memory;
    Cost time;
  };
  Overlap BoundaryWithin(int32_t larger, int32_t smaller) const {
    int64_t memory = 0;  // At most M(V), which TensorGraph::Create bounds; likewise the time.
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

  // The node of whose closure a member is, none for the empty set and for V if it is no closure.
  // For All() there are none at all, and covers() in their place.
  bool has_covers() const { return !cover_starts_.empty(); }
  NodeId closed_node(int32_t set) const { return closed_nodes_[static_cast<size_t>(set)]; }

  // All(): the members that have one node less.
  std::span<const int32_t> covers(int32_t set) const {
    const auto i = static_cast<size_t>(set);
    return {covers_.data() + cover_starts_[i], cover_starts_[i + 1] - cover_starts_[i]};
  }

  // The first member with at least this memory.
  int32_t FirstWithMemory(Bytes min_memory, int32_t end) const {
    return static_cast<int32_t>(
        std::lower_bound(memories_.begin(), memories_.begin() + end, min_memory) -
        memories_.begin());
  }

 private:
  // The nodes of a boundary that are in one word, with their sums.
  struct BoundaryWord {
    uint32_t word;
    uint64_t bits;
    Bytes memory;
    Cost time;
  };
  struct Words;  // What is known of each word of 64 nodes.

  explicit LowerSetFamily(const VertexGraph& graph);
  void AddToBoundary(NodeId v);
  static Result<std::optional<LowerSetFamily>> SomeClosures(const VertexGraph& graph,
                                                            int64_t max_closures,
                                                            const DpLimits& limits);
  Result<bool> ComputeFacts(const VertexGraph& graph, int64_t max_pair_work,
                            const DpLimits& limits);
  Result<Done> LinkCovers(const VertexGraph& graph, const std::vector<uint64_t>& hashes,
                          const DpLimits& limits);
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
  std::vector<BoundaryWord> boundary_;  // Those of set i are in [starts[i], starts[i + 1]).
  std::vector<uint32_t> boundary_starts_;
  std::vector<int32_t> covers_;  // Those of set i are in [starts[i], starts[i + 1]).
  std::vector<uint32_t> cover_starts_;
  std::vector<NodeId> closed_nodes_;
};

// For each set, how many of the sets that were last looked at below it were subsets: a guess which
// way of finding them is cheaper the next time. It never changes which subsets are found.
class SubsetShares {
 public:
  static constexpr int64_t kUnit = 1024;
  explicit SubsetShares(const LowerSetFamily& family)
      : shares_(static_cast<size_t>(family.size()), kUnit) {}
  int64_t of(int32_t set) const { return shares_[static_cast<size_t>(set)]; }
  void Note(int32_t set, int64_t subsets, int64_t looked_at) {
    if (looked_at == 0) return;
    shares_[static_cast<size_t>(set)] = static_cast<int16_t>(subsets * kUnit / looked_at + 1);
  }

 private:
  std::vector<int16_t> shares_;
};

// Lists the subsets of a member. Each thread has its own.
class SubsetFinder {
 public:
  // Keeps references to both.
  SubsetFinder(const LowerSetFamily& family, SubsetShares* shares)
      : family_(family), shares_(*shares) {}

  // Visits each proper subset L of `set` with M(set \ L) <= `max_between` that is in `candidates`,
  // an ascending list of members, and for which `may_matter(L)` holds, once. May visit other such
  // subsets as well: the list only saves work where the caller has no use for the others.
  // `may_matter` is asked before it is known whether L is a subset, but only of smaller sets, so
  // that threads may work on sets of one size. Returns the number of sets that
  // were looked at, which does not depend on `may_matter`. With `learns` the finder notes how many
  // of those it asked about were subsets: for callers whose answers never depend on threads.
  template <typename MayMatter, typename Visit>
  int64_t ForEach(int32_t set, Bytes max_between, std::span<const int32_t> candidates, bool learns,
                  MayMatter may_matter, Visit visit);

 private:
  template <typename MayMatter, typename Visit>
  void Scan(int32_t set, std::span<const int32_t> candidates, bool learns, MayMatter may_matter,
            Visit visit);
  template <typename MayMatter, typename Visit>
  int64_t WalkCovers(int32_t set, Bytes min_memory, MayMatter may_matter, Visit visit);

  // One step down a cover costs about as much as this many tests of a candidate of four words.
  static constexpr int64_t kWalkCost = 8;

  const LowerSetFamily& family_;
  SubsetShares& shares_;
  std::vector<uint64_t> outside_;
  std::vector<int32_t> seen_at_;
  std::vector<int32_t> queue_;
  int32_t visit_number_ = 0;
};

template <typename MayMatter, typename Visit>
int64_t SubsetFinder::ForEach(int32_t set, Bytes max_between, std::span<const int32_t> candidates,
                              bool learns, MayMatter may_matter, Visit visit) {
  // All subsets lie in a window of the numbers that ends before `set`.
  const Bytes min_memory = family_.memory(set) - max_between;
  const int32_t window_begin = family_.FirstWithMemory(min_memory, set);
  const auto begin = std::lower_bound(candidates.begin(), candidates.end(), window_begin);
  const auto end = std::lower_bound(begin, candidates.end(), set);
  const std::span<const int32_t> window(begin, end);
  const auto looked_at = static_cast<int64_t>(window.size());
  const int64_t test_cost = static_cast<int64_t>(family_.words_per_set() + 3) / 4;
  const int64_t walk_cost = kWalkCost * shares_.of(set) * (set - window_begin);
  if (family_.has_covers() && looked_at * test_cost * SubsetShares::kUnit > walk_cost) {
    const int64_t found = WalkCovers(set, min_memory, may_matter, visit);
    if (learns) shares_.Note(set, found, set - window_begin);
    return found;
  }
  Scan(set, window, learns, may_matter, visit);
  return looked_at;
}

// Tests every candidate: the faster way where many are subsets, for it reads memory in order.
template <typename MayMatter, typename Visit>
void SubsetFinder::Scan(int32_t set, std::span<const int32_t> candidates, bool learns,
                        MayMatter may_matter, Visit visit) {
  const int32_t size = family_.size_of(set);
  if (!family_.has_covers()) {
    for (const int32_t below : candidates) {
      if (family_.size_of(below) >= size || !may_matter(below)) continue;
      if (below == 0 || family_.contains(set, family_.closed_node(below))) visit(below);
    }
    return;
  }
  const size_t word_count = family_.words_per_set();
  outside_.assign(family_.words(set), family_.words(set) + word_count);
  for (uint64_t& word : outside_) word = ~word;
  int64_t tested = 0;
  int64_t found = 0;
  for (const int32_t below : candidates) {
    if (family_.size_of(below) >= size || !may_matter(below)) continue;
    ++tested;
    const uint64_t* members = family_.words(below);
    uint64_t strays = 0;
    for (size_t w = 0; w < word_count; ++w) strays |= members[w] & outside_[w];
    if (strays != 0) continue;
    ++found;
    visit(below);
  }
  if (learns) shares_.Note(set, found, tested);
}

// Breadth-first down the covers: a subset that is too far below has only such subsets itself.
template <typename MayMatter, typename Visit>
int64_t SubsetFinder::WalkCovers(int32_t set, Bytes min_memory, MayMatter may_matter, Visit visit) {
  seen_at_.resize(static_cast<size_t>(family_.size()), -1);
  ++visit_number_;
  queue_.assign(1, set);
  for (size_t head = 0; head < queue_.size(); ++head) {
    const int32_t at = queue_[head];
    if (head > 0 && may_matter(at)) visit(at);
    for (const int32_t below : family_.covers(at)) {
      int32_t& seen = seen_at_[static_cast<size_t>(below)];
      if (seen == visit_number_ || family_.memory(below) < min_memory) continue;
      seen = visit_number_;
      queue_.push_back(below);
    }
  }
  return static_cast<int64_t>(queue_.size()) - 1;
}

}  // namespace ckplan
