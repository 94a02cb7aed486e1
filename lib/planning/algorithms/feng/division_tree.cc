#include "lib/planning/algorithms/feng/division_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/feng/maximal_split.h"

namespace ckplan {
namespace {

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

// Returns the vertices that every path from begin to end passes (Algorithm 2): no edge skips them.
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

// Returns whether an edge leads from `from` to `to`.
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

// Divides the close sets one after another, parents before their children.
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
      if (steps_ > max_steps_) return TooLarge();
    }
    return std::move(tree_);
  }

 private:
  Error TooLarge() const {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("the division of {} vertices into close sets takes more than {} "
                                 "steps",
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

  // Returns the parts that are connected without begin and end (Algorithm 3), and the direct edge
  // if there is one.
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
  std::vector<Region> regions_;  // The region of each close set, cleared when it is divided.
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
