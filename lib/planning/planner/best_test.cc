#include <doctest/doctest.h>

#include <string>

#include "lib/base/rng.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/layered_graph.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

const Budget kLeastBudget = {Budget::Kind::kMin, Bytes(0), 0};

PlanRequest BestWithin(const Budget& budget) {
  PlanRequest request;
  request.algorithm = kBestAlgorithm;
  request.effort = SearchEffort::kNormal;
  request.budget = budget;
  return request;
}

Budget Percent(double percent) { return {Budget::Kind::kPercent, Bytes(0), percent}; }

// Checks that the least budget, the first row without a budget and a refusal agree. Returns whether
// the step can do with less memory than keep-all.
bool CheckLeastPeak(const TrainingStep& step, SearchEffort effort) {
  const auto plan_within = [&](const Budget& budget) {
    PlanRequest request = BestWithin(budget);
    request.effort = effort;
    return MakePlan(step, request, {});
  };
  const Bytes first_row = plan_within({}).value().figures.curve.front().peak;
  const Plan least = plan_within(kLeastBudget).value();
  CHECK(least.figures.peak <= first_row);
  CHECK(plan_within(Budget::Of(first_row)).ok());
  const Result<Plan> refused = plan_within(Budget::Of(Bytes(least.figures.peak.count() / 10 * 9)));
  REQUIRE_FALSE(refused.ok());
  const Bytes named(std::stoll(refused.error().remedy.settings.at(0).value));
  CHECK(named >= least.figures.peak);
  CHECK(named <= first_row);
  CHECK(plan_within(Budget::Of(named)).ok());
  CHECK(refused.error().notes.size() == 1);
  return named < KeepAllPeak(step);
}

}  // namespace

TEST_CASE("best: a chain of four, worked by hand") {
  // Keeping everything has its peak at the backward of c: a, b, c and the gradients of c and b are
  // 20 bytes. This step reads b and c, so within 16 bytes a must be freed, and runs again for the
  // backward of b.
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1");
  REQUIRE(KeepAllPeak(graph) == Bytes(20));
  const Plan plan = MakePlan(graph, BestWithin(Budget::Of(Bytes(16))), {}).value();
  CHECK(plan.figures.overhead == Cost(5));
  CHECK(plan.figures.is_optimal);
  CHECK(plan.figures.lower_bound_cost == Cost(5));
  const Certificate& certificate = plan.figures.certificate.value();
  CHECK(certificate.scope == BoundScope::kOwnOrder);
  CHECK(certificate.gap == Cost(0));
  // The backward of b reads a, b and the gradient of b, and makes that of a.
  CHECK(certificate.peak == PeakBound{Bytes(16), PeakProof::kWorkingSet, BoundScope::kAnyOrder});
}

TEST_CASE("best: a bound by the operations of every order is reported as one") {
  // If nothing is recomputed, no search is needed.
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1");
  const Plan plan = MakePlan(graph, BestWithin(Budget::Of(Bytes(20))), {}).value();
  const Certificate& certificate = plan.figures.certificate.value();
  CHECK(certificate.proof == OverheadProof::kRunOnce);
  CHECK(certificate.scope == BoundScope::kAnyOrder);
  CHECK(certificate.peak_gap == Bytes(4));
}

TEST_CASE("best: no algorithm of the registry is better within the same budget") {
  int shown = 0;
  for (uint64_t seed = 1; seed <= Instances(30); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(4, 14));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Budget budget = Percent(static_cast<double>(rng.Between(70, 99)));
    const Result<Plan> best = MakePlan(graph, BestWithin(budget), {});
    for (const SolverInfo& info : AllSolvers()) {
      CAPTURE(std::string(info.name));
      PlanRequest request = BestWithin(budget);
      request.algorithm = info.name;
      const Result<Plan> other = MakePlan(graph, request, {});
      if (!other.ok()) continue;
      REQUIRE(best.ok());
      CHECK(best->figures.overhead <= other->figures.overhead);
      ++shown;
    }
    if (!best.ok()) continue;
    CHECK(best->figures.lower_bound_cost <= best->figures.overhead);
    CHECK(CheckPlan(graph, *best).empty());
  }
  CHECK(shown > Instances(60));
}

TEST_CASE("best: the least peak is no higher than that of any other algorithm") {
  for (uint64_t seed = 1; seed <= Instances(10); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(2, 8));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Plan best = MakePlan(graph, BestWithin(kLeastBudget), {}).value();
    const Certificate& certificate = *best.figures.certificate;
    CHECK(certificate.peak.bytes + certificate.peak_gap == best.figures.peak);
    const bool is_proven = certificate.peak_gap == Bytes(0);
    CHECK(best.figures.is_optimal == (is_proven && certificate.gap == Cost(0)));
    CHECK(best.figures.guarantee.starts_with("no plan in ") == is_proven);
    for (const SolverInfo& info : AllSolvers()) {
      PlanRequest request = BestWithin(kLeastBudget);
      request.algorithm = info.name;
      const Result<Plan> other = MakePlan(graph, request, {});
      if (other.ok()) CHECK(best.figures.peak <= other->figures.peak);
    }
  }
}

TEST_CASE("best: plans in any order are no worse than uses the model's order of operations") {
  int better = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(3, 10));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    PlanRequest request = BestWithin(Percent(static_cast<double>(rng.Between(70, 99))));
    request.effort = SearchEffort::kQuick;
    const Result<Plan> model = MakePlan(graph, request, {});
    request.order = StepOrder::kFree;
    const Result<Plan> free = MakePlan(graph, request, {});
    if (free.ok()) {
      CHECK(CheckPlan(graph, *free).empty());
      CHECK(free->figures.lower_bound_cost <= free->figures.overhead);
    }
    if (!model.ok()) continue;
    REQUIRE(free.ok());
    CHECK(free->figures.overhead <= model->figures.overhead);
    CHECK(free->figures.lower_bound_cost <= model->figures.overhead);
    better += free->figures.overhead < model->figures.overhead ? 1 : 0;
  }
  CHECK(better > 0);
}

TEST_CASE("best: the least peak in any order is no higher than in the model's order") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(2, 8));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    PlanRequest request = BestWithin(kLeastBudget);
    request.effort = SearchEffort::kQuick;
    const Plan model = MakePlan(graph, request, {}).value();
    request.order = StepOrder::kFree;
    CHECK(MakePlan(graph, request, {})->figures.peak <= model.figures.peak);
  }
}

TEST_CASE("best: other algorithms plan in the model's order") {
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2");
  PlanRequest request;
  request.algorithm = "approx-dp";
  request.order = StepOrder::kFree;
  const Result<Plan> plan = MakePlan(graph, request, {});
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message.find("uses the model's order of operations") != std::string::npos);
  request = BestWithin(Percent(90));
  request.order = StepOrder::kFree;
  request.granularity = Granularity::kLayer;
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
}

TEST_CASE("best: a refusal names a budget that it can keep, and says what is proven") {
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1");
  const Result<Plan> refused = MakePlan(graph, BestWithin(Budget::Of(Bytes(3))), {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInfeasible);
  REQUIRE(refused.error().remedy.settings.size() == 1);
  const Bytes least(std::stoll(refused.error().remedy.settings.front().value));
  CHECK(MakePlan(graph, BestWithin(Budget::Of(least)), {}).ok());
  CHECK(refused.error().notes.front() ==
        "no plan in any order fits: each needs at least 16 B (16 bytes)");
}

TEST_CASE("best: the least budget, the first row without a budget and refusals agree") {
  Rng rng(1);
  CheckLeastPeak(RandomLayers(rng, 13, 5), SearchEffort::kNormal);
  for (const char* const model : {"resnet50", "squeezenet1_1"}) {
    CAPTURE(model);
    PlanRequest request;
    request.dims = {{"N", 8}};
    const std::string path = std::string("testdata/models/") + model + ".onnx";
    const Source source = LoadSource(path, request).value();
    CHECK(CheckLeastPeak(source.step(), SearchEffort::kQuick));
  }
}

TEST_CASE("best: without a budget it takes the least peak that adds at most a tenth of a step") {
  // Within 16 bytes a must run again, which costs 5. This is more than a tenth of the first graph's
  // step, but not of the second's.
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1");
  const Plan costly = MakePlan(graph, BestWithin({}), {}).value();
  CHECK(costly.figures.peak == Bytes(20));
  CHECK(costly.figures.overhead == Cost(0));
  CHECK(costly.figures.curve ==
        std::vector<CurvePoint>{{Bytes(16), Cost(5)}, {Bytes(20), Cost(0)}});
  const TensorGraph longer = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@34");
  REQUIRE(longer.forward_cost() + longer.backward_cost() >= Cost(50));
  const Plan cheap = MakePlan(longer, BestWithin({}), {}).value();
  CHECK(cheap.figures.peak == Bytes(16));
  CHECK(cheap.figures.overhead == Cost(5));
}

TEST_CASE("best: without a budget, less memory is not to be had for a tenth of a step") {
  int recomputing = 0;
  for (uint64_t seed = 1; seed <= Instances(20); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(8, 14));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    PlanRequest request = BestWithin({});
    request.effort = SearchEffort::kQuick;
    const Plan plan = MakePlan(graph, request, {}).value();
    const Cost most = MostAdded(10, graph.forward_cost() + graph.backward_cost());
    CHECK(plan.figures.overhead <= most);
    recomputing += plan.figures.overhead > Cost(0);
    // The search does not distinguish peaks that differ by less than this.
    const Bytes less = plan.figures.peak - Bytes(1 + KeepAllPeak(graph).count() / 128);
    request.budget = Budget::Of(less);
    const Result<Plan> other = MakePlan(graph, request, {});
    const bool is_in_own_order =
        other.ok() && other->figures.certificate->scope == BoundScope::kOwnOrder;
    if (is_in_own_order) CHECK(other->figures.overhead > most);
  }
  CHECK(recomputing > 0);
}

TEST_CASE("best: without a budget, what must run again may add more than a tenth of a step") {
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1");
  PlanRequest request = BestWithin({});
  request.recompute = {"c"};
  const Plan plan = MakePlan(graph, request, {}).value();
  CHECK(plan.figures.overhead == Cost(9));
  CHECK(plan.figures.curve.back() == CurvePoint{plan.figures.peak, Cost(9)});
}

TEST_CASE("best: more memory never costs more time, whatever the graph") {
  int points = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(4, 12));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Plan plan = MakePlan(graph, BestWithin({}), {}).value();
    CHECK_FALSE(plan.request.budget.is_given());
    const std::vector<CurvePoint>& curve = plan.figures.curve;
    REQUIRE_FALSE(curve.empty());
    CHECK(curve.back().overhead == Cost(0));
    CHECK(curve.back().peak <= KeepAllPeak(graph));
    points += static_cast<int>(curve.size());
    // The checker checks that the curve is monotone.
    CHECK(CheckPlan(graph, plan).empty());
    // There is a plan for a point of the curve.
    const Plan least = MakePlan(graph, BestWithin(Budget::Of(curve.front().peak)), {}).value();
    CHECK(least.figures.overhead <= curve.front().overhead);
  }
  CHECK(points > 40);
}

TEST_CASE("best: more effort never costs more time, and proves no less") {
  for (uint64_t seed = 1; seed <= Instances(4); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 20;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    PlanRequest request = BestWithin(Percent(75));
    request.effort = SearchEffort::kQuick;
    const Result<Plan> quick = MakePlan(graph, request, {});
    request.effort = SearchEffort::kNormal;
    const Result<Plan> normal = MakePlan(graph, request, {});
    if (!quick.ok()) continue;
    REQUIRE(normal.ok());
    CHECK(normal->figures.overhead <= quick->figures.overhead);
    if (quick->figures.is_optimal) CHECK(normal->figures.is_optimal);
  }
}

TEST_CASE("best: what it does not take is refused") {
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2");
  PlanRequest request = BestWithin(Percent(90));
  request.uses_liveness = false;
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request = BestWithin({});
  request.paper_budget = Budget::Of(Bytes(9));
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
}

}  // namespace ckplan
