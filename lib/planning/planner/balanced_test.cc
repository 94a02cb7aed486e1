// --budget balanced: the plan of the least product of peak and time.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/rng.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/pareto.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/requests.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

const Budget kBalancedBudget{Budget::Kind::kBalanced, Bytes(0), 0};

CurvePoint PointIn(const Plan& plan) { return {plan.figures.peak, plan.figures.overhead}; }

Balance BalanceOf(const TrainingStep& step) { return {step.cost(), Bytes(0)}; }

TensorGraph GraphForBalance(uint64_t seed, int nodes, int64_t max_bytes) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.nodes = nodes;
  options.max_bytes = max_bytes;
  options.max_cost = seed % 3 == 0 ? 10 : 1000;
  return RandomTensorGraph(rng, options);
}

// Returns the algorithms that have curves without a link to the host, but for the integer program,
// which takes long.
std::vector<const SolverInfo*> Choosing() {
  std::vector<const SolverInfo*> algorithms;
  for (const SolverInfo* info : ListedAlgorithms()) {
    const bool is_of_one = info->name == kGivenAlgorithm || info->name == kAutoAlgorithm;
    const bool is_slow = info->name == "checkmate";
    const bool needs_link = info->prepare_offload != nullptr;
    if (!is_of_one && !is_slow && !needs_link) algorithms.push_back(info);
  }
  return algorithms;
}

PlanRequest Quickly(std::string_view algorithm, const Budget& budget) {
  PlanRequest request = RequestFor(algorithm, budget);
  request.effort = SearchEffort::kQuick;
  return request;
}

// Plans for a balance, and checks everything that holds for any algorithm.
Plan PlanBalanced(const TrainingStep& step, std::string_view algorithm) {
  const Result<Plan> plan = MakePlan(step, Quickly(algorithm, kBalancedBudget), {});
  REQUIRE(plan.ok());
  CHECK(CheckPlan(step, *plan).empty());
  CHECK(plan->request.budget == Budget::Of(plan->figures.peak));
  CHECK_FALSE(plan->figures.is_optimal);
  CHECK(plan->figures.curve.empty());
  // The budget that the plan states has a plan. `best` starts from other plans for each budget, and
  // with little effort it may not find this one again.
  if (plan->request.algorithm != kBestAlgorithm) {
    CHECK(MakePlan(step, Quickly(plan->request.algorithm, plan->request.budget), {}).ok());
  }
  return *plan;
}

TEST_CASE("balanced: no point of an algorithm's curve has a lesser product") {
  int between = 0;
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 2 : 6); ++seed) {
    const bool is_large = seed % 3 == 2;
    const TensorGraph graph = GraphForBalance(seed, is_large ? 24 : 9, is_large ? 4000 : 40);
    const Source source{graph, {}, PlanRequest(), false, {}, {}};
    const Balance balance = BalanceOf(graph);
    for (const SolverInfo* info : Choosing()) {
      const std::string name(info->name);
      const Result<ParetoCurve> curve = TracePareto(source, Quickly(name, Budget()), {});
      if (!curve.ok()) continue;  // Some algorithms refuse graphs of this size.
      CAPTURE(seed);
      CAPTURE(name);
      const CurvePoint own = PointIn(PlanBalanced(graph, name));
      for (const CurvePoint& point : curve->points) CHECK_FALSE(balance.IsBetter(point, own));
      between += own.peak > curve->points.front().peak && own.overhead > Cost(0);
    }
  }
  CHECK(between > (kHasSanitizers ? 1 : 5));
}

TEST_CASE("balanced: on small graphs no budget at all gives a plan of a lesser product") {
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 2 : 12); ++seed) {
    const TensorGraph graph = GraphForBalance(seed, 8, 8);
    const Balance balance = BalanceOf(graph);
    const int64_t all = KeepAllPeak(graph).count();
    for (const char* const name :
         {"approx-dp", "exact-dp", "chen-greedy", "chen-sqrt", "feng-acg", "rotor"}) {
      CAPTURE(seed);
      CAPTURE(name);
      if (!MakePlan(graph, RequestFor(name, Budget::Of(Bytes(all))), {}).ok()) continue;
      const CurvePoint own = PointIn(PlanBalanced(graph, name));
      for (int64_t budget = 1; budget <= all; ++budget) {
        CAPTURE(budget);
        const Result<Plan> plan = MakePlan(graph, RequestFor(name, Budget::Of(Bytes(budget))), {});
        if (plan.ok()) CHECK_FALSE(balance.IsBetter(PointIn(*plan), own));
      }
    }
  }
}

TEST_CASE("balanced: a joint graph has the least product of its curve as well") {
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 1 : 6); ++seed) {
    const TensorGraph graph = GraphForBalance(seed, 8, 60);
    Source source{graph, {}, PlanRequest(), false, {}, {}};
    source.joint = ExpandTensorGraph(graph).graph;
    const TrainingStep step = source.step();
    for (const SolverInfo* info : Choosing()) {
      if (!PlansRuns(*info)) continue;
      const std::string name(info->name);
      CAPTURE(seed);
      CAPTURE(name);
      const CurvePoint own = PointIn(PlanBalanced(step, name));
      const ParetoCurve curve = TracePareto(source, Quickly(name, Budget()), {}).value();
      for (const CurvePoint& point : curve.points) {
        CHECK_FALSE(BalanceOf(step).IsBetter(point, own));
      }
    }
  }
}

TEST_CASE("balanced: auto takes the least product of all algorithms") {
  for (uint64_t seed = 0; seed < (kHasSanitizers ? 1 : 4); ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = GraphForBalance(seed, 7, 40);
    const CurvePoint best = PointIn(PlanBalanced(graph, kAutoAlgorithm));
    for (const SolverInfo& info : AllSolvers()) {
      const Result<Plan> plan = MakePlan(graph, Quickly(info.name, kBalancedBudget), {});
      if (plan.ok()) CHECK_FALSE(BalanceOf(graph).IsBetter(PointIn(*plan), best));
    }
  }
}

TEST_CASE("balanced: a chain of four, worked by hand") {
  // Keeping all needs 20 bytes. At 16 bytes a must run again, which costs 5 of a step of 34:
  // 16 x 39 is less than 20 x 34.
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1");
  REQUIRE(TrainingStep(graph).cost() == Cost(34));
  const Plan plan = PlanBalanced(graph, kBestAlgorithm);
  CHECK(plan.figures.peak == Bytes(16));
  CHECK(plan.figures.overhead == Cost(5));
  CHECK(plan.figures.guarantee.starts_with("the lowest product of peak and time found"));
}

TEST_CASE("balanced: constants that the budget covers make time count for more") {
  PlanRequest request = Quickly(kBestAlgorithm, Budget());
  request.dims = {{"N", 8}};
  const Source source = LoadSource("testdata/models/tiny_mlp.onnx", request).value();
  request.total_budget = kBalancedBudget;
  const Plan total = MakePlan(source, request, {}).value();
  const Plan bare = PlanBalanced(source.step(), kBestAlgorithm);
  CHECK(total.request.budget == Budget::Of(total.figures.peak));
  CHECK(total.figures.overhead < bare.figures.overhead);
  const Balance with_constants{source.step().cost(), TotalConstants(total.figures)};
  REQUIRE(with_constants.constants > total.figures.baseline_peak);
  CHECK(with_constants.IsBetter(PointIn(total), PointIn(bare)));
  CHECK(BalanceOf(source.step()).IsBetter(PointIn(bare), PointIn(total)));
}

TEST_CASE("balanced: where one plan is asked for, there is nothing to choose") {
  const TensorGraph graph = GraphForBalance(1, 8, 40);
  PlanRequest set = RequestFor("chen-sqrt", kBalancedBudget);
  set.setting = {"segments", 3};
  const Error of_setting = MakePlan(graph, set, {}).error();
  CHECK(of_setting.code == ErrorCode::kUsage);
  CHECK(of_setting.remedy.settings.at(0).name == "setting");
  const Error of_given = MakePlan(graph, RequestFor(kGivenAlgorithm, kBalancedBudget), {}).error();
  CHECK(of_given.code == ErrorCode::kUsage);
  PlanRequest both = RequestFor(kBestAlgorithm, kBalancedBudget);
  both.total_budget = kBalancedBudget;
  CHECK(MakePlan(graph, both, {}).error().code == ErrorCode::kUsage);
}

}  // namespace
}  // namespace ckplan
