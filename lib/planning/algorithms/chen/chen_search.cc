#include "lib/planning/algorithms/chen/chen_search.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/chen/greedy_cut.h"
#include "lib/planning/algorithms/chen/greedy_plan.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
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

  // kTimeout: stopped before the first plan was measured.
  Result<Done> FindBest(const SolveLimits& limits) {
    CKPLAN_ASSIGN_OR_RETURN(const std::vector<Point> points, Simulate(limits));
    Rank best = {Bytes::Max(), Cost::Max(), 0};
    for (const Point& point : points) {
      // An arena is never smaller than the peak, so neither this point nor a later one can be
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
      return MakeError(ErrorCode::kTimeout, "chen-search: stopped before its first plan");
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
  // The memory of a point of the grid, its overhead, and its setting as a tie breaker.
  using Rank = std::tuple<Bytes, Cost, int64_t>;
  struct Point {
    Rank rank;  // The memory here is the simulated peak.
    Schedule schedule;
  };

  // Returns the points of the grid (those before a stop) by ascending peak.
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

}  // namespace ckplan
