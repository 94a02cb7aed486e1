#include "lib/planning/algorithms/dtr/dtr.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/stop.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

// Makes f_1 -> ... -> f_n and g_n ... g_1, where each g_i reads f_i and the g before it.
JointGraph Feedforward(int32_t layers) {
  std::vector<SmallOp> ops;
  for (int32_t i = 0; i < layers; ++i) {
    ops.push_back({"f", 1, 1, i > 0 ? std::vector<int32_t>{i - 1} : std::vector<int32_t>{}});
  }
  for (int32_t i = 0; i < layers; ++i) {
    ops.push_back({"g", 1, 1, {layers - 1 - i, layers + i - 1}});
  }
  return GraphOfOps(ops);
}

PlanRequest Within(const Budget& budget) {
  PlanRequest request;
  request.algorithm = "dtr";
  request.budget = budget;
  return request;
}

const Budget kLeast = {Budget::Kind::kMin, Bytes(0), 0};

std::string NamesOfRuns(const JointGraph& graph, const Plan& plan) {
  std::string names;
  for (const Step& step : plan.schedule.steps) names += graph.op(step.node()).name + " ";
  return names;
}

}  // namespace

// Keeping everything needs 16 bytes, at t. Within 13 bytes a storage must be evicted before t,
// which locks r. p has waited for 11 units of time and q for 10: h(p) = 1 / (4 x 11), and h(q) = 8
// / (4 x 10).
TEST_CASE("dtr: evicts the storage of least h_DTR, and makes it again when it is read") {
  const JointGraph graph = GraphOfOps({{"p", 4, 1, {}},
                                       {"q", 4, 8, {}},
                                       {"r", 4, 1, {}},
                                       {"t", 4, 1, {2}},
                                       {"u", 1, 1, {0, 1, 3}}});
  REQUIRE(KeepAllPeak(graph) == Bytes(16));
  const Plan plan = MakePlan(graph, Within(Budget::Of(Bytes(13))), {}).value();
  CHECK(NamesOfRuns(graph, plan) == "p q r t p u ");
  CHECK(plan.figures.peak == Bytes(13));
  CHECK(plan.figures.overhead == Cost(1));
  const Result<Plan> refused = MakePlan(graph, Within(Budget::Of(Bytes(12))), {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInfeasible);
  CHECK(refused.error().remedy.settings.at(0).value == "13");
}

// As above, but p is already evicted when q or r must be. Recomputing q would need p as well, so
// h(q) = (2 + 3) / (4 x 6) is more than h(r) = 3 / (4 x 4).
TEST_CASE(
    "dtr: the cost of a storage counts the evicted storages that must be made again before it") {
  const JointGraph graph = GraphOfOps({{"p", 4, 3, {}},
                                       {"q", 4, 2, {0}},
                                       {"r", 4, 3, {}},
                                       {"t", 4, 1, {}},
                                       {"u", 1, 1, {1, 3}},
                                       {"v", 1, 1, {2, 4}}});
  REQUIRE(KeepAllPeak(graph) == Bytes(13));
  const Plan plan = MakePlan(graph, Within(Budget::Of(Bytes(12))), {}).value();
  CHECK(NamesOfRuns(graph, plan) == "p q r t u r v ");
}

TEST_CASE("dtr: a feedforward network takes O(n) runs within O(sqrt n) memory (Theorem 3.1)") {
  for (const int32_t layers : {64, 256, 1024}) {
    CAPTURE(layers);
    const JointGraph graph = Feedforward(layers);
    REQUIRE(KeepAllPeak(graph) == Bytes(layers + 1));
    int64_t root = 1;
    while (root * root < layers) ++root;
    const Plan plan = MakePlan(graph, Within(Budget::Of(Bytes(3 * root))), {}).value();
    CHECK(plan.figures.overhead <= Cost(2 * layers));
  }
}

TEST_CASE("dtr: on random joint graphs budgets are met, and more memory never costs more time") {
  int reran = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(1, 30));
    const JointGraph graph = RandomJointGraph(rng, options);
    const Plan least = MakePlan(graph, Within(kLeast), {}).value();
    const Bytes own = KeepAllPeak(graph);
    CHECK(least.figures.peak <= own);
    Cost overhead = Cost::Max();
    for (int64_t part = 0; part <= 4; ++part) {
      const Bytes budget(least.figures.peak.count() +
                         (own - least.figures.peak).count() * part / 4);
      const Plan plan = MakePlan(graph, Within(Budget::Of(budget)), {}).value();
      CHECK(plan.figures.peak <= budget);
      CHECK(plan.figures.overhead <= overhead);
      overhead = plan.figures.overhead;
      reran += plan.figures.overhead > Cost(0) ? 1 : 0;
    }
    CHECK(overhead <= Cost(0));
  }
  CHECK(reran > 100);
}

TEST_CASE("dtr: an optimal plan costs less if the greedy choice is wrong") {
  const TensorGraph graph =
      GraphFromText("a:6@1 -> b:6@4 -> c:6@1 -> d:6@4 -> e:6@1 -> f:6@4 -> g:1@1");
  PlanRequest request = Within(kLeast);
  request.budget = Budget::Of(MakePlan(graph, request, {})->figures.peak);
  const Plan greedy = *MakePlan(graph, request, {});
  request.algorithm = "best";
  CHECK(MakePlan(graph, request, {})->figures.overhead < greedy.figures.overhead);
}

TEST_CASE("dtr: a graph that is too large is refused") {
  const Result<std::unique_ptr<PreparedRunSolver>> refused =
      PrepareDtrRuns(Feedforward(10'001), {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("dtr: when its work limit is reached, it has the plans of the limits tried so far") {
  const JointGraph graph = Feedforward(40);
  const Result<std::unique_ptr<PreparedRunSolver>> whole = PrepareDtrRuns(graph, {});
  const Knob all = (*whole)->knob();
  int cut_short = 0;
  for (const int64_t polls : {20, 300, 500, 700, 1'000, 1'500, 2'000, 1'000'000}) {
    CAPTURE(polls);
    WorkLimit limit({}, polls);
    const auto solver = limit.Run([&](std::stop_token stop) {
      SolveLimits limits;
      limits.stop = std::move(stop);
      return PrepareDtrRuns(graph, limits);
    });
    if (!solver || !solver->ok()) continue;
    PreparedRunSolver& prepared = ***solver;
    const Knob some = prepared.knob();
    CHECK(some.min >= all.min);
    CHECK(some.max == all.max);
    const RunOutcome plan = prepared.Solve(some.max, {}).value();
    CHECK(plan.runs == (*whole)->Solve(all.max, {})->runs);
    const bool is_cut_short = plan.guarantee.starts_with(kStoppedEarly);
    CHECK((is_cut_short || some.min == all.min));
    cut_short += is_cut_short ? 1 : 0;
  }
  CHECK(cut_short > 1);
}

}  // namespace ckplan
