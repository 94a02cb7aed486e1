#include "lib/planning/algorithms/feng/division_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/feng/two_terminal.h"

namespace ckplan {

namespace {

// The maximal split of a non-branched close set without splitting vertices (Feng & Huang 2019,
// Definition 7, Algorithm 4). division_tree.h says how this is faster than the paper's version.

// An undivided close set: [begin, end] with all vertices inside.
struct Region {
  VertexId begin;
  VertexId end;
  std::vector<VertexId> inside;  // Ascending.
  bool has_edge = false;         // The close set includes the edge from begin to end.
};

// A position in the region: 0 is its begin, then come the vertices inside it in order, then its
// end. So positions are in topological order.
using Place = int32_t;

// An edge of the reduced graph, with the vertices reduced into it.
struct ReducedEdge {
  Place from = 0;
  Place to = 0;
  std::vector<Place> inside;
  bool has_edge = false;  // The edge also replaces a direct edge of the region, not only vertices
                          // inside.
  bool is_gone = false;
};

// The region after reduction: each vertex with one edge in and one out, and all parallel edges,
// become one edge.
class ReducedRegion {
 public:
  ReducedRegion(const TwoTerminalGraph& graph, const Region& region)
      : out_(region.inside.size() + 2), in_(region.inside.size() + 2) {
    ReadEdges(graph, region);
    std::vector<Place> simple;
    for (Place v = 1; v < last(); ++v) simple.push_back(v);
    while (!simple.empty()) {
      PollStop();
      const Place v = simple.back();
      simple.pop_back();
      if (IsSimple(v)) Reduce(v, simple);
    }
    for (Place v = 0; v <= last(); ++v) {
      if (!out(v).empty() || !in(v).empty()) places_.push_back(v);
    }
  }

  Place last() const { return static_cast<Place>(out_.size()) - 1; }
  const std::vector<Place>& places() const { return places_; }  // Ascending, both ends included.
  std::vector<ReducedEdge>& edges() { return edges_; }
  const std::map<Place, size_t>& out(Place v) const { return out_[static_cast<size_t>(v)]; }
  const std::map<Place, size_t>& in(Place v) const { return in_[static_cast<size_t>(v)]; }

 private:
  void ReadEdges(const TwoTerminalGraph& graph, const Region& region) {
    const auto place_of = [&](VertexId v) {
      if (v == region.begin) return Place{0};
      const auto it = std::lower_bound(region.inside.begin(), region.inside.end(), v);
      return static_cast<Place>(it - region.inside.begin()) + 1;
    };
    for (const VertexId v : region.inside) {
      PollStop();
      for (const VertexId p : graph.vertices[v].predecessors) {
        Add({place_of(p), place_of(v), {}, true, false});
      }
      const std::vector<VertexId>& successors = graph.vertices[v].successors;
      if (std::binary_search(successors.begin(), successors.end(), region.end)) {
        Add({place_of(v), last(), {}, true, false});
      }
    }
  }

  // Adds the edge, merged into a parallel one if possible.
  void Add(ReducedEdge edge) {
    const auto [it, is_new] = out_[static_cast<size_t>(edge.from)].emplace(edge.to, edges_.size());
    if (is_new) {
      in_[static_cast<size_t>(edge.to)].emplace(edge.from, edges_.size());
      edges_.push_back(std::move(edge));
      return;
    }
    ReducedEdge& parallel = edges_[it->second];
    parallel.has_edge |= edge.has_edge;
    if (parallel.inside.size() < edge.inside.size()) std::swap(parallel.inside, edge.inside);
    parallel.inside.insert(parallel.inside.end(), edge.inside.begin(), edge.inside.end());
  }

  bool IsSimple(Place v) const {
    return v != 0 && v != last() && in(v).size() == 1 && out(v).size() == 1;
  }

  void Reduce(Place v, std::vector<Place>& simple) {
    ReducedEdge& before = edges_[in(v).begin()->second];
    ReducedEdge& after = edges_[out(v).begin()->second];
    ReducedEdge joined{before.from, after.to, std::move(before.inside), false, false};
    if (joined.inside.size() < after.inside.size()) std::swap(joined.inside, after.inside);
    joined.inside.insert(joined.inside.end(), after.inside.begin(), after.inside.end());
    joined.inside.push_back(v);
    before.is_gone = true;
    after.is_gone = true;
    out_[static_cast<size_t>(joined.from)].erase(v);
    in_[static_cast<size_t>(joined.to)].erase(v);
    in_[static_cast<size_t>(v)].clear();
    out_[static_cast<size_t>(v)].clear();
    simple.push_back(joined.from);
    simple.push_back(joined.to);
    Add(std::move(joined));
  }

  std::vector<std::map<Place, size_t>> out_;  // The edge to each neighbour.
  std::vector<std::map<Place, size_t>> in_;
  std::vector<ReducedEdge> edges_;
  std::vector<Place> places_;
};

// A close set of the reduced graph that contains at least one vertex.
struct Candidate {
  Place begin = 0;
  Place end = 0;
  std::vector<Place> inside;
};

class Splitter {
 public:
  Splitter(const TwoTerminalGraph& graph, const Region& region)
      : region_(region), reduced_(graph, region), owner_(region.inside.size() + 2, -1) {}

  std::optional<std::vector<Region>> Split(int64_t max_steps, int64_t* steps) && {
    FindDominators();
    *steps += CountPairs();
    if (*steps > max_steps) return std::nullopt;
    TakeLargest(FindCandidates());
    return MakeMembers();
  }

 private:
  static Place& At(std::vector<Place>& list, Place v) { return list[static_cast<size_t>(v)]; }

  // Sets dominator_[v] to the nearest place on all paths from the begin to v. A dominator comes
  // before its place, so the later of two places is never an ancestor of the other.
  void FindDominators() {
    dominator_.assign(owner_.size(), -1);
    after_.assign(owner_.size(), -1);
    const std::vector<Place>& places = reduced_.places();
    for (size_t i = 1; i < places.size(); ++i) {
      Place nearest = -1;
      for (const auto& [p, edge] : reduced_.in(places[i])) {
        Place other = p;
        if (nearest < 0) nearest = other;
        while (nearest != other) {
          PollStop();
          Place& later = nearest > other ? nearest : other;
          later = At(dominator_, later);
        }
      }
      At(dominator_, places[i]) = nearest;
    }
    for (size_t i = places.size() - 1; i-- > 0;) {
      Place nearest = -1;
      for (const auto& [s, edge] : reduced_.out(places[i])) {
        Place other = s;
        if (nearest < 0) nearest = other;
        while (nearest != other) {
          PollStop();
          Place& earlier = nearest < other ? nearest : other;
          earlier = At(after_, earlier);
        }
      }
      At(after_, places[i]) = nearest;
    }
  }

  // Returns the number of pairs that FindCandidates tries. A place's dominators come before it.
  int64_t CountPairs() {
    std::vector<Place> before(owner_.size());
    std::vector<Place> after(owner_.size());
    const std::vector<Place>& places = reduced_.places();
    for (size_t i = 1; i < places.size(); ++i) {
      At(before, places[i]) = At(before, At(dominator_, places[i])) + 1;
    }
    int64_t pairs = 0;
    for (size_t i = places.size() - 1; i-- > 1;) {
      At(after, places[i]) = At(after, At(after_, places[i])) + 1;
      pairs += int64_t{At(before, places[i])} * At(after, places[i]);
    }
    return pairs;
  }

  // Returns all close sets except the region itself: for each pair of a dominator and a
  // post-dominator of a place, the places between them that have no other edges.
  std::vector<Candidate> FindCandidates() {
    std::map<std::pair<Place, Place>, std::vector<Place>> between;
    for (const Place v : reduced_.places()) {
      if (v == 0 || v == reduced_.last()) continue;
      for (Place begin = At(dominator_, v); begin >= 0; begin = At(dominator_, begin)) {
        for (Place end = At(after_, v); end >= 0; end = At(after_, end)) {
          PollStop();
          if (begin != 0 || end != reduced_.last()) between[{begin, end}].push_back(v);
        }
      }
    }
    std::vector<Candidate> candidates;
    for (const auto& [ends, places] : between) {
      Candidate candidate{ends.first, ends.second, {}};
      KeepClosedParts(places, candidate);
      if (!candidate.inside.empty()) candidates.push_back(std::move(candidate));
    }
    return candidates;
  }

  void KeepClosedParts(const std::vector<Place>& places, Candidate& candidate) const {
    std::map<Place, bool> is_seen;
    for (const Place v : places) is_seen[v] = false;
    for (const Place start : places) {
      if (is_seen[start]) continue;
      is_seen[start] = true;
      std::vector<Place> part = {start};
      bool is_closed = true;
      const auto visit = [&](Place w) {
        if (w == candidate.begin || w == candidate.end) return;
        const auto it = is_seen.find(w);
        is_closed &= it != is_seen.end();
        if (it == is_seen.end() || it->second) return;
        it->second = true;
        part.push_back(w);
      };
      for (size_t head = 0; head < part.size(); ++head) {
        PollStop();
        const Place v = part[head];
        for (const auto& [w, edge] : reduced_.in(v)) visit(w);
        for (const auto& [w, edge] : reduced_.out(v)) visit(w);
      }
      if (is_closed) candidate.inside.insert(candidate.inside.end(), part.begin(), part.end());
    }
  }

  // Two close sets in a region of this type are either disjoint or nested (Lemma 6). So, from the
  // largest to the smallest, a candidate is either inside a member or disjoint from all members.
  void TakeLargest(std::vector<Candidate> candidates) {
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return a.inside.size() > b.inside.size();
    });
    for (Candidate& candidate : candidates) {
      if (At(owner_, candidate.inside.front()) >= 0) continue;
      for (const Place v : candidate.inside) At(owner_, v) = static_cast<int32_t>(members_.size());
      member_of_[{candidate.begin, candidate.end}] = static_cast<int32_t>(members_.size());
      members_.push_back({VertexOf(candidate.begin), VertexOf(candidate.end), {}, false});
      for (const Place v : candidate.inside) members_.back().inside.push_back(VertexOf(v));
    }
  }

  VertexId VertexOf(Place place) const {
    if (place == 0) return region_.begin;
    if (place == reduced_.last()) return region_.end;
    return region_.inside[static_cast<size_t>(place) - 1];
  }

  // Returns the member that the edge belongs to, creating it if needed.
  Region& MemberOf(const ReducedEdge& edge) {
    int32_t member = std::max(At(owner_, edge.from), At(owner_, edge.to));
    if (member < 0) {
      const auto [it, is_new] =
          member_of_.emplace(std::pair(edge.from, edge.to), static_cast<int32_t>(members_.size()));
      if (is_new) members_.push_back({VertexOf(edge.from), VertexOf(edge.to), {}, false});
      member = it->second;
      members_[static_cast<size_t>(member)].has_edge |= edge.has_edge;
    }
    return members_[static_cast<size_t>(member)];
  }

  std::vector<Region> MakeMembers() {
    for (const ReducedEdge& edge : reduced_.edges()) {
      if (edge.is_gone) continue;
      Region& member = MemberOf(edge);
      for (const Place v : edge.inside) member.inside.push_back(VertexOf(v));
    }
    for (Region& member : members_) std::sort(member.inside.begin(), member.inside.end());
    return std::move(members_);
  }

  const Region& region_;
  ReducedRegion reduced_;
  std::vector<Place> dominator_;
  std::vector<Place> after_;                              // By place: the nearest post-dominator.
  std::vector<int32_t> owner_;                            // The member that contains each place.
  std::map<std::pair<Place, Place>, int32_t> member_of_;  // By the two ends of a member.
  std::vector<Region> members_;
};

// Returns the members, in no particular order: the close sets inside `region` that are in no other
// one, and the edges in none of these. Adds its steps (pairs of a vertex and a possible close set
// around it) to `steps`. Returns nothing if there would be more than `max_steps`.
std::optional<std::vector<Region>> MaximalSplit(const TwoTerminalGraph& graph, const Region& region,
                                                int64_t max_steps, int64_t* steps) {
  return Splitter(graph, region).Split(max_steps, steps);
}

Region WholeGraph(const TwoTerminalGraph& graph) {
  Region region{graph.source(), graph.target(), {}, false};
  for (VertexId v(1); v < graph.target(); ++v) region.inside.push_back(v);
  const std::vector<VertexId>& first = graph.vertices[graph.source()].successors;
  region.has_edge = std::binary_search(first.begin(), first.end(), graph.target());
  return region;
}

Bytes MemoryOf(const TwoTerminalGraph& graph, const Region& region) {
  Bytes memory;
  for (const VertexId v : region.inside) memory += graph.vertices[v].memory;
  return memory;
}

// Returns the vertices on every path from begin to end (Algorithm 2): no edge skips them.
std::vector<VertexId> SplittingVertices(const TwoTerminalGraph& graph, const Region& region) {
  std::vector<VertexId> splitting;
  if (region.has_edge || region.inside.empty()) return splitting;
  VertexId furthest;
  for (const VertexId v : region.inside) {
    const std::vector<VertexId>& predecessors = graph.vertices[v].predecessors;
    if (std::binary_search(predecessors.begin(), predecessors.end(), region.begin)) furthest = v;
  }
  for (const VertexId v : region.inside) {
    if (furthest <= v) splitting.push_back(v);
    for (const VertexId w : graph.vertices[v].successors) furthest = std::max(furthest, w);
  }
  return splitting;
}

// Tells whether an edge leads from `from` to `to`.
bool HasEdge(const TwoTerminalGraph& graph, VertexId from, VertexId to) {
  const std::vector<VertexId>& successors = graph.vertices[from].successors;
  return std::binary_search(successors.begin(), successors.end(), to);
}

std::vector<Region> CutAt(const TwoTerminalGraph& graph, const Region& region,
                          const std::vector<VertexId>& splitting) {
  std::vector<Region> segments;
  VertexId begin = region.begin;
  auto at = region.inside.begin();
  for (size_t i = 0; i <= splitting.size(); ++i) {
    const VertexId end = i < splitting.size() ? splitting[i] : region.end;
    const auto stop = std::lower_bound(at, region.inside.end(), end);
    segments.push_back({begin, end, {at, stop}, HasEdge(graph, begin, end)});
    begin = end;
    at = stop == region.inside.end() ? stop : std::next(stop);
  }
  return segments;
}

// Divides the close sets one by one, parents before children.
class Divider {
 public:
  Divider(const TwoTerminalGraph& graph, bool is_deep, int64_t max_steps)
      : graph_(graph),
        is_deep_(is_deep),
        max_steps_(max_steps),
        part_of_(graph.vertices.size(), -1) {}

  Result<DivisionTree> Run(const std::stop_token& stop) && {
    Add(WholeGraph(graph_));
    for (size_t i = 0; i < regions_.size(); ++i) {
      if (stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
      const Region region = std::move(regions_[i]);
      if (region.inside.empty() || (i > 0 && !is_deep_)) continue;
      steps_ += static_cast<int64_t>(region.inside.size());
      if (steps_ <= max_steps_) Divide(i, region);
      if (steps_ > max_steps_) return TooLargeError();
    }
    return std::move(tree_);
  }

 private:
  Error TooLargeError() const {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("dividing {} vertices into close sets takes more than {} steps",
                                 graph_.vertices.size(), max_steps_));
  }

  void Add(Region region) {
    CloseSet set;
    set.kind = region.inside.empty() ? CloseSetKind::kEdge : CloseSetKind::kUndivided;
    set.begin = region.begin;
    set.end = region.end;
    set.memory = MemoryOf(graph_, region);
    tree_.close_sets.push_back(std::move(set));
    regions_.push_back(std::move(region));
  }

  void Divide(size_t index, const Region& region) {
    CloseSet& set = tree_.close_sets[index];
    set.inner = SplittingVertices(graph_, region);
    if (!set.inner.empty()) {
      set.kind = CloseSetKind::kSplittable;
      AddChildren(index, CutAt(graph_, region, set.inner));
      return;
    }
    if (!is_deep_) return;
    std::vector<Region> branches = Branches(region);
    if (branches.size() > 1) {
      set.kind = CloseSetKind::kBranched;
      AddChildren(index, std::move(branches));
      return;
    }
    set.kind = CloseSetKind::kNonBranched;
    auto members = MaximalSplit(graph_, region, max_steps_, &steps_);
    if (!members) return;  // The step limit is exceeded.
    for (const Region& member : *members) {
      if (member.begin != region.begin) set.inner.push_back(member.begin);
    }
    std::sort(set.inner.begin(), set.inner.end());
    set.inner.erase(std::unique(set.inner.begin(), set.inner.end()), set.inner.end());
    AddChildren(index, *std::move(members));
  }

  void AddChildren(size_t index, std::vector<Region> regions) {
    std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
      return std::tie(a.begin, a.end, a.inside) < std::tie(b.begin, b.end, b.inside);
    });
    for (Region& region : regions) {
      tree_.close_sets[index].children.push_back(static_cast<int32_t>(tree_.close_sets.size()));
      Add(std::move(region));
    }
  }

  // Returns the components without begin and end (Algorithm 3), and the direct edge, if any.
  std::vector<Region> Branches(const Region& region) {
    for (const VertexId v : region.inside) part_of_[v] = -1;
    int32_t part_count = 0;
    for (const VertexId start : region.inside) {
      if (part_of_[start] < 0) Flood(region, start, part_count++);
    }
    const size_t first = region.has_edge ? 1 : 0;
    std::vector<Region> branches(static_cast<size_t>(part_count) + first,
                                 {region.begin, region.end, {}, false});
    if (region.has_edge) branches[0].has_edge = true;
    for (const VertexId v : region.inside) {
      branches[static_cast<size_t>(part_of_[v]) + first].inside.push_back(v);
    }
    return branches;
  }

  void Flood(const Region& region, VertexId start, int32_t part) {
    std::vector<VertexId> reached = {start};
    part_of_[start] = part;
    const auto visit = [&](VertexId w) {
      if (w == region.begin || w == region.end || part_of_[w] >= 0) return;
      part_of_[w] = part;
      reached.push_back(w);
    };
    for (size_t head = 0; head < reached.size(); ++head) {
      PollStop();
      const auto& vertex = graph_.vertices[reached[head]];
      for (const VertexId w : vertex.predecessors) visit(w);
      for (const VertexId w : vertex.successors) visit(w);
    }
  }

  const TwoTerminalGraph& graph_;
  const bool is_deep_;
  const int64_t max_steps_;
  int64_t steps_ = 0;
  IdVector<VertexId, int32_t> part_of_;
  DivisionTree tree_;
  std::vector<Region> regions_;  // By close set; cleared when divided.
};

}  // namespace

Result<DivisionTree> DivideGraph(const TwoTerminalGraph& graph, std::stop_token stop,
                                 int64_t max_steps) {
  return Divider(graph, true, max_steps).Run(stop);
}

DivisionTree DivideAtSplittingVertices(const TwoTerminalGraph& graph) {
  return *Divider(graph, false, std::numeric_limits<int64_t>::max()).Run({});
}

}  // namespace ckplan
