#include "lib/planning/algorithms/chen/chen_frontier.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {

namespace {

Frontiers FrontiersAlong(const VertexGraph& vertices, std::vector<NodeId> order) {
  IdVector<NodeId, size_t> position(vertices.size());
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  // The bytes that leave the frontier at each position: results read there for the last time.
  std::vector<Bytes> leaving(order.size());
  Frontiers frontiers;
  Bytes passed;
  Bytes frontier;
  for (size_t i = 0; i < order.size(); ++i) {
    PollStop();
    const NodeId v = order[i];
    size_t last_reader = i;
    for (const NodeId w : vertices.successors(v)) {
      last_reader = std::max(last_reader, position[w]);
    }
    passed += vertices.memory(v);
    frontier += vertices.memory(v);
    leaving[last_reader] += vertices.memory(v);
    frontier -= leaving[i];
    frontiers.passed.push_back(passed);
    frontiers.frontier.push_back(frontier);
  }
  frontiers.order = std::move(order);
  return frontiers;
}

IdVector<NodeId, size_t> LevelsOf(const VertexGraph& vertices) {
  IdVector<NodeId, size_t> level(vertices.size());
  for (const NodeId v : vertices.ids()) {
    for (const NodeId p : vertices.predecessors(v)) level[v] = std::max(level[v], level[p] + 1);
  }
  for (size_t i = vertices.size(); i-- > 0;) {
    const NodeId v(i);
    if (vertices.successors(v).empty()) continue;
    size_t first_reader = vertices.size();
    for (const NodeId w : vertices.successors(v)) first_reader = std::min(first_reader, level[w]);
    level[v] = first_reader - 1;
  }
  return level;
}

// Returns a * multiple / parts, rounded down, without overflow.
Bytes MultipleOf(Bytes a, int64_t multiple, int64_t parts) {
  return Bytes(a.count() / parts * multiple + a.count() % parts * multiple / parts);
}

Bytes Distance(Bytes a, Bytes b) { return a < b ? b - a : a - b; }

}  // namespace

Frontiers FrontiersInGraphOrder(const VertexGraph& vertices) {
  std::vector<NodeId> order;
  for (const NodeId v : vertices.ids()) order.push_back(v);
  return FrontiersAlong(vertices, std::move(order));
}

Frontiers FrontiersByLevel(const VertexGraph& vertices) {
  const IdVector<NodeId, size_t> level = LevelsOf(vertices);
  std::vector<NodeId> order;
  for (const NodeId v : vertices.ids()) order.push_back(v);
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return level[a] < level[b]; });
  return FrontiersAlong(vertices, std::move(order));
}

std::vector<size_t> CutAtSmallFrontiers(const Frontiers& frontiers, int64_t segments) {
  std::vector<size_t> cuts;
  if (frontiers.order.empty()) return cuts;
  const Bytes total = frontiers.passed.back();
  // A cut after the last node would not split anything.
  const auto first = frontiers.passed.begin();
  const auto end = frontiers.passed.end() - 1;
  auto low = first;
  for (int64_t i = 1; i < segments; ++i) {
    PollStop();
    low = std::lower_bound(low, end, MultipleOf(total, 2 * i - 1, 2 * segments));
    const auto high = std::lower_bound(low, end, MultipleOf(total, 2 * i + 1, 2 * segments));
    if (low == high) continue;
    const Bytes target = MultipleOf(total, i, segments);
    const auto rank = [&](std::vector<Bytes>::const_iterator at) {
      __extension__ using Wide = __int128;
      const auto position = static_cast<size_t>(at - first);
      const int64_t distance = Distance(*at, target).count();
      const Wide kept = static_cast<Wide>(frontiers.frontier[position].count()) * (segments - 1);
      return std::tuple(kept + distance, distance, position);
    };
    auto best = low;
    for (auto at = low; at != high; ++at) {
      if (rank(at) < rank(best)) best = at;
    }
    cuts.push_back(static_cast<size_t>(best - first));
    low = high;
  }
  return cuts;
}

namespace {

class ChenFrontier : public PreparedSolver {
 public:
  explicit ChenFrontier(const Problem& problem)
      : problem_(problem),
        in_graph_order_(FrontiersInGraphOrder(problem.vertices)),
        by_level_(FrontiersByLevel(problem.vertices)) {}

  Knob knob() const override {
    const auto nodes = static_cast<int64_t>(problem_.vertices.size());
    return {Knob::Kind::kSegmentCount, 1, nodes, DefaultSegmentCount()};
  }

  Result<SolveOutcome> Solve(int64_t segment_count, const SolveLimits&) override {
    SolveOutcome own = PlanAlong(in_graph_order_, segment_count);
    SolveOutcome by_level = PlanAlong(by_level_, segment_count);
    return by_level.paper.peak < own.paper.peak ? by_level : own;
  }

 private:
  // Returns round(sqrt(S / F)), which is at most sqrt(n), because F is at least the mean result.
  int64_t DefaultSegmentCount() const {
    const auto total = static_cast<double>(problem_.vertices.total_memory().count());
    const auto nodes = static_cast<double>(problem_.vertices.size());
    const auto frontier = static_cast<double>(MiddleFrontier().count());
    if (total == 0) return 1;
    return std::lround(std::sqrt(std::min(nodes, total / std::max(frontier, 1.0))));
  }

  Bytes MiddleFrontier() const {
    Bytes least = problem_.vertices.total_memory();
    for (const Frontiers* frontiers : {&in_graph_order_, &by_level_}) {
      for (const size_t cut : CutAtSmallFrontiers(*frontiers, 2)) {
        least = std::min(least, frontiers->frontier[cut]);
      }
    }
    return least;
  }

  SolveOutcome PlanAlong(const Frontiers& frontiers, int64_t segment_count) const {
    const std::vector<size_t> cuts = CutAtSmallFrontiers(frontiers, segment_count);
    LowerSetSequence sequence;
    sequence.segment_of.resize(problem_.vertices.size());
    size_t segment = 0;
    for (size_t i = 0; i < frontiers.order.size(); ++i) {
      sequence.segment_of[frontiers.order[i]] = static_cast<int32_t>(segment);
      if (segment < cuts.size() && cuts[segment] == i) ++segment;
    }
    sequence.segment_count = static_cast<int32_t>(cuts.size()) + 1;
    SolveOutcome outcome;
    outcome.paper = PaperFiguresOf(sequence);
    outcome.strategy = std::move(sequence);
    outcome.guarantee = "heuristic: segments of about equal memory, cut at small frontiers";
    return outcome;
  }

  PaperFigures PaperFiguresOf(const LowerSetSequence& sequence) const {
    const VertexGraph& vertices = problem_.vertices;
    std::vector<Bytes> segment_memory(static_cast<size_t>(sequence.segment_count));
    PaperFigures paper;
    paper.overhead = vertices.total_time();
    Bytes kept;
    for (const NodeId v : vertices.ids()) {
      const int32_t segment = sequence.segment_of[v];
      segment_memory[static_cast<size_t>(segment)] += vertices.memory(v);
      const auto readers = vertices.successors(v);
      const bool is_kept = std::any_of(readers.begin(), readers.end(),
                                       [&](NodeId w) { return sequence.segment_of[w] > segment; });
      if (!is_kept) continue;
      kept += vertices.memory(v);
      paper.overhead -= vertices.time(v);
    }
    paper.peak = kept + *std::max_element(segment_memory.begin(), segment_memory.end());
    return paper;
  }

  const Problem& problem_;
  const Frontiers in_graph_order_;
  const Frontiers by_level_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenFrontier(const Problem& problem,
                                                            const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new ChenFrontier(problem));
}

}  // namespace ckplan
