#include "lib/planning/algorithms/chen/chen_greedy.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

GreedyCut CutGreedily(const Chain& chain, const VertexGraph& vertices, Bytes budget) {
  std::vector<Bytes> block_memory(static_cast<size_t>(chain.block_count));
  for (const NodeId v : vertices.ids()) {
    block_memory[static_cast<size_t>(chain.block_of[v])] += vertices.memory(v);
  }
  GreedyCut cut;
  Bytes segment;  // The paper's temp.
  for (size_t block = 0; block < block_memory.size(); ++block) {
    PollStop();
    cut.segment_of_block.push_back(cut.segment_count - 1);
    segment += block_memory[block];
    cut.largest_segment = std::max(cut.largest_segment, segment);
    const bool is_last = block + 1 == block_memory.size();
    if (is_last || segment <= budget) continue;
    cut.kept += vertices.memory(chain.splitting[block]);
    cut.kept_time += vertices.time(chain.splitting[block]);
    ++cut.segment_count;
    segment = Bytes(0);
  }
  return cut;
}

Bytes GeometricMean(Bytes a, Bytes b) {
  __extension__ using Wide = unsigned __int128;
  const auto product = [](Bytes x, Bytes y) {
    return static_cast<Wide>(x.count()) * static_cast<Wide>(y.count());
  };
  Bytes low = std::min(a, b);
  Bytes high = std::max(a, b);
  while (low < high) {
    const Bytes middle(low.count() + (high.count() - low.count() + 1) / 2);
    if (product(middle, middle) <= product(a, b)) {
      low = middle;
    } else {
      high = middle - Bytes(1);
    }
  }
  return low;
}

Bytes EstimateSegmentBudget(const Chain& chain, const VertexGraph& vertices) {
  const GreedyCut first = CutGreedily(chain, vertices, Bytes(0));
  return GeometricMean(first.kept, first.largest_segment);
}

SolveOutcome GreedyPlan(const Problem& problem, const Chain& chain, Bytes budget) {
  const GreedyCut cut = CutGreedily(chain, problem.vertices, budget);
  LowerSetSequence sequence;
  sequence.segment_count = cut.segment_count;
  sequence.segment_of.resize(problem.vertices.size());
  for (const NodeId v : problem.vertices.ids()) {
    sequence.segment_of[v] = cut.segment_of_block[static_cast<size_t>(chain.block_of[v])];
  }
  SolveOutcome outcome;
  outcome.strategy = std::move(sequence);
  outcome.paper = {budget, cut.kept + cut.largest_segment,
                   problem.vertices.total_time() - cut.kept_time};
  outcome.guarantee = "heuristic: closes each segment once it exceeds B bytes";
  return outcome;
}

namespace {

class ChenGreedy : public PreparedSolver {
 public:
  explicit ChenGreedy(const Problem& problem)
      : problem_(problem), chain_(FindChain(problem.graph, problem.vertices)) {}

  Knob knob() const override {
    return {Knob::Kind::kSegmentBudget, 0, problem_.vertices.total_memory().count(),
            EstimateSegmentBudget(chain_, problem_.vertices).count()};
  }

  Result<SolveOutcome> Solve(int64_t budget, const SolveLimits&) override {
    return GreedyPlan(problem_, chain_, Bytes(budget));
  }

 private:
  const Problem& problem_;
  const Chain chain_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenGreedy(const Problem& problem,
                                                          const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new ChenGreedy(problem));
}

namespace {

class ChenSearch : public PreparedSolver {
 public:
  explicit ChenSearch(const Problem& problem)
      : problem_(problem), chain_(FindChain(problem.graph, problem.vertices)) {
    const Bytes centre = EstimateSegmentBudget(chain_, problem.vertices);
    const Bytes low = GeometricMean(centre, Bytes(centre.count() / 2));
    const Bytes high = GeometricMean(centre, 2 * centre);
    budgets_.push_back(centre);
    for (int64_t i = 0; i < kGridSize; ++i) {
      budgets_.push_back(low + Bytes((high - low).count() * i / (kGridSize - 1)));
    }
  }

  // kTimeout: stopped before measuring the first plan.
  Result<Done> FindBest(const SolveLimits& limits) {
    CKPLAN_ASSIGN_OR_RETURN(const std::vector<Point> points, Simulate(limits));
    Rank best = {Bytes::Max(), Cost::Max(), 0};
    for (const Point& point : points) {
      // An arena is never smaller than the peak, so neither this point nor any later one can be
      // better.
      if (point.rank >= best || (best_setting_ != 0 && limits.stop.stop_requested())) break;
      const auto& [peak, overhead, setting] = point.rank;
      const Arena arena = PlaceBuffers(BuildTimeline(problem_.graph, point.schedule));
      const Rank rank(arena.bytes, overhead, setting);
      if (rank >= best) continue;
      best = rank;
      best_setting_ = setting;
    }
    if (best_setting_ == 0) {
      return MakeError(ErrorCode::kTimeout, "chen-search was stopped before its first plan");
    }
    return Done{};
  }

  Knob knob() const override {
    return {Knob::Kind::kGridPoint, 1, static_cast<int64_t>(budgets_.size()), best_setting_};
  }

  Result<SolveOutcome> Solve(int64_t setting, const SolveLimits&) override {
    SolveOutcome outcome = GreedyPlan(problem_, chain_, budgets_[static_cast<size_t>(setting - 1)]);
    outcome.guarantee = "heuristic: the best of a grid of segment budgets around sqrt(x y)";
    return outcome;
  }

 private:
  // The memory of a grid point, its overhead, and its setting as a tie-breaker.
  using Rank = std::tuple<Bytes, Cost, int64_t>;
  struct Point {
    Rank rank;  // The memory here is the simulated peak.
    Schedule schedule;
  };

  // Returns the grid points simulated before any stop, by ascending peak.
  Result<std::vector<Point>> Simulate(const SolveLimits& limits) {
    Simulator simulator(problem_.graph);
    std::vector<Point> points;
    for (size_t i = 0; i < budgets_.size() && !limits.stop.stop_requested(); ++i) {
      const SolveOutcome outcome = GreedyPlan(problem_, chain_, budgets_[i]);
      Schedule schedule = LowerStrategy(problem_.graph, outcome.strategy);
      CKPLAN_ASSIGN_OR_RETURN(const Simulation simulation, simulator.Run(schedule));
      const auto setting = static_cast<int64_t>(i) + 1;
      points.push_back({{simulation.peak, simulation.overhead, setting}, std::move(schedule)});
    }
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.rank < b.rank; });
    return points;
  }

  const Problem& problem_;
  const Chain chain_;
  std::vector<Bytes> budgets_;  // The first one belongs to setting 1.
  int64_t best_setting_ = 0;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenSearch(const Problem& problem,
                                                          const SolveLimits& limits) {
  auto solver = std::make_unique<ChenSearch>(problem);
  CKPLAN_RETURN_IF_ERROR(solver->FindBest(limits));
  return std::unique_ptr<PreparedSolver>(std::move(solver));
}

namespace {

class ChenKeepCostly : public PreparedSolver {
 public:
  explicit ChenKeepCostly(const Problem& problem)
      : vertices_(problem.vertices), chain_(FindChain(problem.graph, problem.vertices)) {
    for (const NodeId v : vertices_.ids()) costly_first_.push_back(v);
    std::stable_sort(costly_first_.begin(), costly_first_.end(),
                     [&](NodeId a, NodeId b) { return SavesMoreForEachByte(a, b); });
  }

  Knob knob() const override {
    return {Knob::Kind::kSegmentBudget, 0, vertices_.total_memory().count(),
            EstimateSegmentBudget(chain_, vertices_).count()};
  }

  Result<SolveOutcome> Solve(int64_t budget, const SolveLimits&) override {
    const GreedyCut cut = CutGreedily(chain_, vertices_, Bytes(budget));
    KeptSet kept{KeptByCuts(cut)};
    Bytes for_costly;
    Cost saved;
    for (const NodeId v : costly_first_) {
      const Bytes memory = vertices_.memory(v);
      if (kept.is_kept[v] || for_costly + memory > Bytes(budget)) continue;
      kept.is_kept[v] = true;
      for_costly += memory;
      saved += vertices_.time(v);
    }
    SolveOutcome outcome;
    outcome.strategy = std::move(kept);
    outcome.paper = {Bytes(budget), cut.kept + for_costly + cut.largest_segment,
                     vertices_.total_time() - cut.kept_time - saved};
    outcome.guarantee =
        "heuristic: closes segments above B bytes, keeps up to B bytes of costly results";
    return outcome;
  }

 private:
  // Returns the results at the cuts and in the last segment.
  IdVector<NodeId, bool> KeptByCuts(const GreedyCut& cut) const {
    IdVector<NodeId, bool> is_kept(vertices_.size());
    const std::vector<int32_t>& segments = cut.segment_of_block;
    for (const NodeId v : vertices_.ids()) {
      const auto block = static_cast<size_t>(chain_.block_of[v]);
      is_kept[v] = segments[block] == cut.segment_count - 1;
    }
    for (size_t block = 0; block + 1 < segments.size(); ++block) {
      if (segments[block + 1] != segments[block]) is_kept[chain_.splitting[block]] = true;
    }
    return is_kept;
  }

  // Tells whether T_a / M_a > T_b / M_b, without dividing. Results without bytes come first.
  bool SavesMoreForEachByte(NodeId a, NodeId b) const {
    __extension__ using Wide = __int128;
    const bool is_free = vertices_.memory(a) == Bytes(0);
    const bool is_other_free = vertices_.memory(b) == Bytes(0);
    if (is_free || is_other_free) return is_free && !is_other_free;
    return static_cast<Wide>(vertices_.time(a).count()) * vertices_.memory(b).count() >
           static_cast<Wide>(vertices_.time(b).count()) * vertices_.memory(a).count();
  }

  const VertexGraph& vertices_;
  const Chain chain_;
  std::vector<NodeId> costly_first_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenKeepCostly(const Problem& problem,
                                                              const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new ChenKeepCostly(problem));
}

}  // namespace ckplan
