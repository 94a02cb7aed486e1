#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "lib/base/rng.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/plans/requests.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

constexpr std::string_view kOneOfThem = "approx-dp";

auto Rank(const Plan& plan, bool by_peak) {
  const int64_t overhead = plan.figures.overhead.count();
  const int64_t peak = plan.figures.peak.count();
  return by_peak ? std::tuple(peak, overhead, plan.request.algorithm)
                 : std::tuple(overhead, peak, plan.request.algorithm);
}

// Returns the best plan of all algorithms, tried one by one, or nothing if none has a plan.
std::optional<Plan> BestOf(const TensorGraph& graph, Budget budget) {
  const bool by_peak = budget.kind == Budget::Kind::kMin;
  std::optional<Plan> best;
  for (const SolverInfo& info : AllSolvers()) {
    const Result<Plan> plan = MakePlan(graph, RequestFor(info.name, budget), {});
    if (plan.ok() && (!best || Rank(*plan, by_peak) < Rank(*best, by_peak))) best = *plan;
  }
  return best;
}

TEST_CASE("auto: it is the best plan of all algorithms, whole, under its algorithm's name") {
  int other_winners = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto edge_percent = static_cast<int>(rng.Between(10, 60));
    const auto nodes = static_cast<int>(rng.Between(2, 8));
    const TensorGraph graph = RandomDag(rng, nodes, edge_percent, 20, 9);
    const Bytes all = KeepAllPeak(graph);
    for (const Budget& budget : {Budget::Of(all), Budget{Budget::Kind::kPercent, Bytes(0), 80},
                                 Budget{Budget::Kind::kMin, Bytes(0), 0}}) {
      const std::optional<Plan> best = BestOf(graph, budget);
      const Result<Plan> plan = MakePlan(graph, RequestFor(kAutoAlgorithm, budget), {});
      REQUIRE(plan.ok() == best.has_value());
      if (!best) continue;
      CHECK(*plan == *best);
      other_winners += plan->request.algorithm != kOneOfThem;
    }
  }
  CHECK(other_winners > 10);
}

TEST_CASE("auto: where one algorithm has no plan within the budget, another's is found") {
  int rescued = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomDag(rng, 8, 30, 20, 9);
    const Budget budget{Budget::Kind::kPercent, Bytes(0), 80};
    const Result<Plan> by_default = MakePlan(graph, RequestFor(kOneOfThem, budget), {});
    if (by_default.ok()) continue;
    CHECK(by_default.error().code == ErrorCode::kInfeasible);
    const Result<Plan> plan = MakePlan(graph, RequestFor(kAutoAlgorithm, budget), {});
    if (!plan.ok()) continue;
    CHECK(plan->request.algorithm != kOneOfThem);
    CHECK(plan->figures.peak.count() * 100 <= KeepAllPeak(graph).count() * 80);
    ++rescued;
  }
  CHECK(rescued > 0);
}

TEST_CASE("auto: the least budget of any algorithm is named when none has a plan, and has one") {
  const TensorGraph graph = GraphFromText("a:400@1 -> b:200@3 -> c:100@5 -> d:50@7");
  const Result<Plan> plan = MakePlan(graph, RequestFor("auto", Budget::Of(Bytes(1))), {});
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().code == ErrorCode::kInfeasible);
  REQUIRE(plan.error().remedy.settings.size() == 1);
  const Bytes least(std::stoll(plan.error().remedy.settings[0].value));
  CHECK(MakePlan(graph, RequestFor("auto", Budget::Of(least)), {}).ok());
  CHECK_FALSE(MakePlan(graph, RequestFor("auto", Budget::Of(least - Bytes(1))), {}).ok());
}

TEST_CASE("auto: without a budget on the peak there is nothing to be best at") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  PlanRequest request = RequestFor("auto", {});
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.paper_budget = {Budget::Kind::kMin, Bytes(0), 0};
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
}

TEST_CASE("auto: algorithms that are stopped are left out, and named") {
  const TensorGraph graph = GraphFromText("a:400@1 -> b:200@3 -> c:100@5 -> d:50@7");
  std::stop_source source;
  source.request_stop();
  Shortage shortage;
  const Result<Plan> plan = MakePlan(graph, RequestFor("auto", Budget::Of(KeepAllPeak(graph))),
                                     {source.get_token()}, &shortage);
  REQUIRE(plan.ok());
  const std::vector<std::string>& stopped = shortage.of_time;
  CHECK(std::find(stopped.begin(), stopped.end(), "kusumoto-exhaustive") != stopped.end());
  CHECK(std::find(stopped.begin(), stopped.end(), "keep-all") == stopped.end());
}

}  // namespace
}  // namespace ckplan
