#include "lib/planning/algorithms/best/trade_off.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/plan/balance.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/random_instance.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

class RunPlanSearch : public PlanSearch {
 public:
  RunPlanSearch(BestProblem* problem, const BestOptions& options)
      : problem_(problem), options_(options), simulator_(problem->graph()) {}

  int64_t LeastPeak() override { return problem_->certificates().least_peak_any_plan; }

  Result<Found> Find(int64_t budget, std::optional<int64_t> enough,
                     const Schedule* start) override {
    BestOptions options = options_;
    options.budget = budget;
    options.enough = enough;
    if (start != nullptr) options.starts = {RunsOf(*start)};
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome outcome, SolveBest(problem_, options));
    Found found{std::nullopt, outcome.least_peak.bytes.count()};
    if (outcome.runs) found.plan = ScheduleOfRuns(*outcome.runs);
    return found;
  }

  PricedPlan Priced(Schedule schedule) override {
    const Simulation simulation = simulator_.Run(schedule).value();
    return {std::move(schedule), simulation.peak.count(),
            (simulation.cost - problem_->graph().cost()).count()};
  }

 private:
  BestProblem* const problem_;
  const BestOptions options_;
  Simulator simulator_;
};

TradeOff InOwnOrder(BestProblem* problem) {
  BestOptions options;
  options.work = kBriefWork;
  options.is_order_free = false;
  const Schedule start = ScheduleOfRuns(RequiredOwnOrder(problem->flat()));
  return TradeOff(std::make_unique<RunPlanSearch>(problem, options), start);
}

// Returns the least peak of plans in the graph's own order that add at most this much, by searching
// all states.
int64_t MinPeakByBruteForce(const RandomInstance& instance, int64_t most_added) {
  int64_t high = PeakOf(instance.problem, instance.order);
  for (int64_t low = 0; low + 1 < high;) {
    const int64_t middle = low + (high - low) / 2;
    const auto cost = ExhaustiveMinCost(instance.problem, instance.order, middle);
    const bool fits = cost && *cost - instance.problem.total_cost <= most_added;
    (fits ? high : low) = middle;
  }
  return high;
}

}  // namespace

TEST_CASE("trade-off: a chain of four, worked by hand") {
  // Keeping everything peaks at 20 bytes. Within 16, a must be freed and recomputed, which costs 5.
  const Expansion chain = ExpandTensorGraph(GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1"));
  BestProblem problem(chain.graph);
  TradeOff trade_off = InOwnOrder(&problem);
  REQUIRE(trade_off.SearchWithin(4).ok());
  CHECK(trade_off.LeastWithin(4).peak == 20);
  REQUIRE(trade_off.SearchWithin(5).ok());
  CHECK(trade_off.LeastWithin(5).peak == 16);
  CHECK(trade_off.LeastWithin(5).overhead == 5);
  CHECK(trade_off.LeastWithin(4).peak == 20);
  REQUIRE(trade_off.SearchMin().ok());
  CHECK(trade_off.Least().peak == 16);
}

TEST_CASE("trade-off: the least peak within a time equals that of searching all states") {
  int with_recomputation = 0;
  for (uint64_t seed = 1; seed <= Instances(60); ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, 50);
    BestProblem problem(instance.graph);
    TradeOff trade_off = InOwnOrder(&problem);
    const int64_t nothing = trade_off.Fastest().overhead;
    const int64_t once = instance.OnceCost();
    for (const int64_t share : {20, 10, 50, 0}) {
      CAPTURE(share);
      const int64_t most = nothing + once * share / 100;
      REQUIRE(trade_off.SearchWithin(most).ok());
      const PricedPlan& found = trade_off.LeastWithin(most);
      CHECK(found.overhead <= most);
      CHECK(found.peak == MinPeakByBruteForce(instance, most));
      with_recomputation += found.overhead > nothing;
    }
  }
  CHECK(with_recomputation > static_cast<int>(Instances(60)) / 4);
}

TEST_CASE("trade-off: more memory always costs less time, after any searches") {
  for (uint64_t seed = 1; seed <= Instances(20); ++seed) {
    CAPTURE(seed);
    const RandomInstance instance(seed, 50);
    BestProblem problem(instance.graph);
    TradeOff trade_off = InOwnOrder(&problem);
    REQUIRE(trade_off.SearchEvenly(5).ok());
    REQUIRE(trade_off.SearchMin().ok());
    REQUIRE(trade_off.SearchWithin(instance.OnceCost() / 10).ok());
    const std::vector<CurvePoint> points = trade_off.Points();
    CHECK(points == FrontOf(points));
    CHECK(points.size() == trade_off.plans().size());
    CHECK(trade_off.Least().peak <= trade_off.LeastWithin(0).peak);
  }
}

TEST_CASE("trade-off: beside the best plan for a balance, better ones are found") {
  // A chain has many plans between its least peak and that of keeping everything. The more bytes
  // are added to each peak, the more a balance prefers plans that add little time.
  std::string text = "n0:8@5";
  for (int i = 1; i < 20; ++i) {
    text += " -> n" + std::to_string(i) + ":" + std::to_string(4 + i % 5) + "@" +
            std::to_string(3 + i % 4);
  }
  const Expansion chain = ExpandTensorGraph(GraphFromText(text));
  for (const int64_t added_bytes : {0, 10, 20, 40, 80, 160}) {
    CAPTURE(added_bytes);
    BestProblem problem(chain.graph);
    TradeOff trade_off = InOwnOrder(&problem);
    REQUIRE(trade_off.SearchEvenly(3).ok());
    const Balance balance{chain.graph.cost(), Bytes(added_bytes)};
    const CurvePoint before = balance.BestOf(trade_off.Points());
    REQUIRE(trade_off.SearchForBalance(balance).ok());
    const CurvePoint after = balance.BestOf(trade_off.Points());
    CHECK(balance.IsBetter(after, before));
    CHECK(trade_off.At(after).peak == after.peak.count());
    CHECK(trade_off.At(after).overhead == after.overhead.count());
  }
}

TEST_CASE("trade-off: a time below that of any plan gives the plan of least time") {
  const Expansion chain = ExpandTensorGraph(GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1"));
  BestProblem problem(chain.graph);
  TradeOff trade_off = InOwnOrder(&problem);
  REQUIRE(trade_off.SearchWithin(-1).ok());
  CHECK(&trade_off.LeastWithin(-1) == &trade_off.Fastest());
  CHECK(trade_off.Fastest().peak == 20);
}

}  // namespace ckplan
