// Families of lower sets: sets of nodes that contain all predecessors of their members.
//
//   a → b → d     lower sets: {} {a} {a,b} {a,c} {a,b,c} {a,b,c,d}
//   a → c → d     closures L^v: {a} {a,b} {a,c} {a,b,c,d}
//
// The dynamic programs of Kusumoto et al. 2019 run over one of two families: all lower sets
// (exact-dp), whose number can be exponential in the width of the graph, or the closures
// L^v = {w : v is reachable from w}, one per node (approx-dp). A family knows for each member what
// the recurrences need, and lists the subsets of a member without any table of all pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

class LowerSetFamily {
 public:
  // Every lower set, the empty one and V included. kUnsupported, with the number met so far, when
  // there are more than `max_count`. O(S x width) time and memory for S lower sets, times n / 64
  // words.
  static Result<LowerSetFamily> All(const VertexGraph& graph, int64_t max_count);

  // The empty set, every closure L^v, and V (which is no closure if there are several sinks).
  // O(n^2 / 64) memory.
  static LowerSetFamily Closures(const VertexGraph& graph);

  // Members are numbered by ascending memory M(L), sets of equal memory by ascending size, so that
  // a set comes after its subsets: 0 is the empty set, size() - 1 is V.
  int32_t size() const { return static_cast<int32_t>(facts_.size()); }

  bool contains(int32_t set, NodeId v) const {
    const auto i = static_cast<size_t>(v.index());
    return (words(set)[i / 64] >> (i % 64) & 1) != 0;
  }

  // Visits the members of a set, ascending.
  template <typename Visit>
  void ForEachMember(int32_t set, Visit visit) const {
    for (size_t w = 0; w < words_per_set_; ++w) {
      for (uint64_t word = words(set)[w]; word != 0; word &= word - 1) {
        visit(NodeId(w * 64 + static_cast<size_t>(std::countr_zero(word))));
      }
    }
  }

  struct Facts {
    Bytes memory;           // M(L)
    Cost time;              // T(L)
    Bytes neighbours;       // M(d+(L) \ L) + M(d-(d+(L)) \ L): terms (iii) and (iv) of Eq. 2.
    Bytes boundary_memory;  // M(d(L))
    Cost boundary_time;     // T(d(L))
  };
  const Facts& facts(int32_t set) const { return facts_[static_cast<size_t>(set)]; }

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
      const BoundaryNode& node = boundary_[i];
      if ((members[node.word] & node.bit) == 0) continue;
      memory += node.memory.count();
      time += node.time.count();
    }
    return {Bytes(memory), Cost(time)};
  }

  // Visits each proper subset L of `set` with M(set \ L) <= `max_between` that is in `candidates`,
  // an ascending list of members, once. May visit other such subsets as well: the list only saves
  // work where the caller has no use for the others.
  template <typename Visit>
  void ForEachSubset(int32_t set, Bytes max_between, std::span<const int32_t> candidates,
                     Visit visit);

 private:
  struct BoundaryNode {
    uint32_t word;
    uint64_t bit;
    Bytes memory;
    Cost time;
  };

  explicit LowerSetFamily(size_t node_count) : words_per_set_((node_count + 63) / 64) {}
  const uint64_t* words(int32_t set) const {
    return bits_.data() + static_cast<size_t>(set) * words_per_set_;
  }
  void ComputeFacts(const VertexGraph& graph);
  void LinkCovers(const VertexGraph& graph);
  template <typename Visit>
  void Scan(int32_t set, std::span<const int32_t> candidates, Visit visit);
  template <typename Visit>
  void WalkCovers(int32_t set, Bytes min_memory, Visit visit);

  // One step down a cover costs about as much as this many tests of a candidate.
  static constexpr int64_t kWalkCost = 8;
  static constexpr int64_t kShareUnit = 1024;

  size_t words_per_set_;
  std::vector<uint64_t> bits_;
  std::vector<Facts> facts_;
  std::vector<Bytes> memories_;         // The facts' `memory`, close together for the searches.
  std::vector<BoundaryNode> boundary_;  // Those of set i are in [starts[i], starts[i + 1]).
  std::vector<uint32_t> boundary_starts_;
  // All(): the members that have one node less; those of set i are in [starts[i], starts[i + 1]).
  // Closures(): empty.
  std::vector<int32_t> covers_;
  std::vector<uint32_t> cover_starts_;
  // Closures(): the member that is the closure of a node.
  IdVector<NodeId, int32_t> closure_of_;
  // How many of the sets in the last window were subsets, in units of 1 / kShareUnit: a guess which
  // way of finding them is cheaper in the next one.
  int64_t subset_share_ = kShareUnit;
  // Working memory of ForEachSubset.
  std::vector<uint64_t> outside_;
  std::vector<int32_t> seen_at_;
  std::vector<int32_t> queue_;
  int32_t visit_number_ = 0;
};

template <typename Visit>
void LowerSetFamily::ForEachSubset(int32_t set, Bytes max_between,
                                   std::span<const int32_t> candidates, Visit visit) {
  const Bytes min_memory = facts(set).memory - max_between;
  if (covers_.empty()) {
    if (set != 0 && facts(0).memory >= min_memory) visit(0);
    ForEachMember(set, [&](NodeId v) {
      const int32_t closure = closure_of_[v];
      if (closure != set && facts(closure).memory >= min_memory) visit(closure);
    });
    return;
  }
  // All subsets lie in a window of the numbers that ends before `set`.
  const auto window_begin = static_cast<int32_t>(
      std::lower_bound(memories_.begin(), memories_.begin() + set, min_memory) - memories_.begin());
  const auto begin = std::lower_bound(candidates.begin(), candidates.end(), window_begin);
  const auto end = std::lower_bound(begin, candidates.end(), set);
  const int64_t window = set - window_begin;
  int64_t found = 0;
  const auto count_and_visit = [&](int32_t below) {
    ++found;
    visit(below);
  };
  if ((end - begin) * kShareUnit <= kWalkCost * subset_share_ * window) {
    Scan(set, {begin, end}, count_and_visit);
    if (end > begin) subset_share_ = found * kShareUnit / (end - begin) + 1;
  } else {
    WalkCovers(set, min_memory, count_and_visit);
    if (window > 0) subset_share_ = found * kShareUnit / window + 1;
  }
}

// Tests every candidate: the faster way where many are subsets, for it reads memory in order.
template <typename Visit>
void LowerSetFamily::Scan(int32_t set, std::span<const int32_t> candidates, Visit visit) {
  outside_.assign(words(set), words(set) + words_per_set_);
  for (uint64_t& word : outside_) word = ~word;
  for (const int32_t below : candidates) {
    const uint64_t* members = words(below);
    uint64_t strays = 0;
    for (size_t w = 0; w < words_per_set_; ++w) strays |= members[w] & outside_[w];
    if (strays == 0) visit(below);
  }
}

// Breadth-first down the covers: a subset that is too far below has only such subsets itself.
template <typename Visit>
void LowerSetFamily::WalkCovers(int32_t set, Bytes min_memory, Visit visit) {
  seen_at_.resize(facts_.size(), -1);
  ++visit_number_;
  queue_.assign(1, set);
  for (size_t head = 0; head < queue_.size(); ++head) {
    const auto at = static_cast<size_t>(queue_[head]);
    if (head > 0) visit(queue_[head]);
    for (uint32_t i = cover_starts_[at]; i < cover_starts_[at + 1]; ++i) {
      const auto below = static_cast<size_t>(covers_[i]);
      int32_t& seen = seen_at_[below];
      if (seen == visit_number_ || memories_[below] < min_memory) continue;
      seen = visit_number_;
      queue_.push_back(covers_[i]);
    }
  }
}

}  // namespace ckplan
