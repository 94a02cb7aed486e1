// --added-time: the least peak that a given added time allows.
#include "lib/planning/plan/added_time.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/requests.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

PlanRequest AtMost(std::string_view algorithm, double percent) {
  PlanRequest request = RequestFor(algorithm, Budget());
  request.added_time = {Budget::Kind::kPercent, Bytes(0), percent};
  return request;
}

TensorGraph SmallGraph(uint64_t seed) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(4, 9));
  options.max_bytes = seed % 2 == 0 ? 20 : 4000;
  options.max_cost = seed % 3 == 0 ? 10 : 1000;
  return RandomTensorGraph(rng, options);
}

TEST_CASE("added time: every algorithm adds no more, or says what it would add") {
  int planned = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 2 : 12); ++seed) {
    const TensorGraph graph = SmallGraph(seed);
    const Cost step = TrainingStep(graph).cost();
    for (const SolverInfo* info : ListedAlgorithms()) {
      const std::string name(info->name);
      if (name == kGivenAlgorithm || name == "checkmate") continue;
      if (info->prepare_offload != nullptr) continue;  // It needs a link.
      CAPTURE(seed);
      CAPTURE(name);
      const Result<Plan> plan = MakePlan(graph, AtMost(name, 10), {});
      if (!plan.ok()) {
        if (plan.error().code != ErrorCode::kInfeasible) continue;
        ++refused;
        // The remedy works.
        const std::string enough = plan.error().remedy.settings.at(0).value;
        CHECK(MakePlan(graph, AtMost(name, std::stod(enough)), {}).ok());
        continue;
      }
      ++planned;
      CHECK(CheckPlan(graph, *plan).empty());
      CHECK(plan->figures.overhead <= MostAdded(10, step));
      CHECK(plan->request.budget == Budget::Of(plan->figures.peak));
      CHECK(plan->figures.peak <= plan->figures.baseline_peak);
    }
  }
  CHECK(planned > 50 / (kHasSanitizers ? 8 : 1));
  CHECK(refused > 0);
}

TEST_CASE("added time: no budget of many gives a plan of less memory that adds no more") {
  constexpr int kBudgets = 24;
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 1 : 6); ++seed) {
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 40;
    options.max_bytes = 4000;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Cost most = MostAdded(12, TrainingStep(graph).cost());
    for (const char* const name : {"approx-dp", "chen-greedy", "feng-linear", "hong-selection"}) {
      CAPTURE(seed);
      CAPTURE(name);
      const Result<Plan> plan = MakePlan(graph, AtMost(name, 12), {});
      const Bytes high = KeepAllPeak(graph);
      for (int i = 1; i <= kBudgets; ++i) {
        const Bytes budget(high.count() / kBudgets * i);
        const Result<Plan> within = MakePlan(graph, RequestFor(name, Budget::Of(budget)), {});
        if (!within.ok() || within->figures.overhead > most) continue;
        REQUIRE(plan.ok());
        CHECK(plan->figures.peak <= within->figures.peak);
      }
    }
  }
}

// A chain of nodes with random sizes and costs.
TensorGraph RandomChain(uint64_t seed, int nodes) {
  Rng rng(seed);
  std::string text;
  for (int i = 0; i < nodes; ++i) {
    const auto cost = rng.Between(1, 20);
    const auto bytes = rng.Between(1, 40);
    text += fmt::format("{}n{}:{}@{}", i == 0 ? "" : " -> ", i, bytes, cost);
  }
  return GraphFromText(text);
}

// The settings of dtr are budgets, each of which has its own plan. No grid over them is tried, so a
// search that ends early, or in the wrong half, does not find the plan by another way.
TEST_CASE("added time: a knob without a grid is searched to the byte") {
  int recomputing = 0;
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 2 : 8); ++seed) {
    const TensorGraph graph = RandomChain(seed, 24);
    const Cost step = TrainingStep(graph).cost();
    // What each budget costs, tried one by one.
    std::vector<CurvePoint> points;
    for (int64_t budget = 1; budget <= KeepAllPeak(graph).count(); ++budget) {
      const Result<Plan> plan = MakePlan(graph, RequestFor("dtr", Budget::Of(Bytes(budget))), {});
      if (plan.ok()) points.push_back({plan->figures.peak, plan->figures.overhead});
    }
    const std::vector<CurvePoint> front = FrontOf(std::move(points));
    for (const double percent : {1, 3, 7, 15, 30}) {
      CAPTURE(seed);
      CAPTURE(percent);
      const CurvePoint least = MinPeakWithin(front, MostAdded(percent, step));
      const Plan plan = MakePlan(graph, AtMost("dtr", percent), {}).value();
      CHECK(plan.figures.peak == least.peak);
      recomputing += least.overhead > Cost(0);
    }
  }
  CHECK(recomputing > (kHasSanitizers ? 4 : 20));
}

TEST_CASE("added time: what best proves to be the least peak is it") {
  int proven = 0;
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 10 : 40); ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = SmallGraph(seed);
    const Cost most = MostAdded(15, TrainingStep(graph).cost());
    const Result<Plan> plan = MakePlan(graph, AtMost(kBestAlgorithm, 15), {});
    REQUIRE(plan.ok());
    CHECK(plan->figures.overhead <= most);
    PlanRequest less = RequestFor(kBestAlgorithm, Budget::Of(plan->figures.peak - Bytes(1)));
    less.effort = SearchEffort::kThorough;
    const Result<Plan> below = MakePlan(graph, less, {});
    if (plan->figures.guarantee.find("that adds at most 15 % has a lower peak") ==
        std::string::npos) {
      continue;
    }
    ++proven;
    if (below.ok()) CHECK(below->figures.overhead > most);
    if (below.ok()) CHECK(*below->figures.lower_bound_cost > most);
  }
  CHECK(proven > (kHasSanitizers ? 1 : 20));
}

TEST_CASE("added time: nothing may be added, then nothing is recomputed") {
  const TensorGraph graph = SmallGraph(3);
  const Plan plan = MakePlan(graph, AtMost(kBestAlgorithm, 0), {}).value();
  CHECK(plan.figures.overhead == Cost(0));
  PlanRequest both = AtMost(kBestAlgorithm, 5);
  both.budget = Budget::Of(plan.figures.peak);
  CHECK(MakePlan(graph, both, {}).error().code == ErrorCode::kUsage);
}

}  // namespace
}  // namespace ckplan
