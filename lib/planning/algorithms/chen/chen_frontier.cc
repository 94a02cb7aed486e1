#include "lib/planning/algorithms/chen/chen_frontier.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/chen/frontiers.h"

namespace ckplan {
namespace {

class ChenFrontier : public PreparedSolver {
 public:
  explicit ChenFrontier(const Problem& problem)
      : problem_(problem),
        in_graph_order_(FrontiersInGraphOrder(problem.vertices)),
        by_level_(FrontiersByLevel(problem.vertices)) {}

  Knob knob() const override {
    const auto nodes = static_cast<int64_t>(problem_.vertices.size());
    return {Knob::Kind::kSegmentCount, 1, nodes, SegmentsWithoutSetting()};
  }

  Result<SolveOutcome> Solve(int64_t segment_count, const SolveLimits&) override {
    SolveOutcome own = PlanAlong(in_graph_order_, segment_count);
    SolveOutcome by_level = PlanAlong(by_level_, segment_count);
    return by_level.paper.peak < own.paper.peak ? by_level : own;
  }

 private:
  // Returns round(sqrt(S / F)), which is at most sqrt(n), since F is at least the mean result.
  int64_t SegmentsWithoutSetting() const {
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
    outcome.guarantee = "heuristic: segments of about equal memory, cut where little crosses";
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
