#include "lib/planning/algorithms/checkmate/checkmate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

// Returns the least cost for each peak over all plans in stages: each operation has its first run
// in its own stage, and any of the earlier ones may run again before it, in their order.
std::map<Bytes, Cost> FrontOfAllPlans(const JointGraph& graph) {
  const auto count = static_cast<int32_t>(graph.ops().size());
  Simulator simulator(graph);
  std::map<Bytes, Cost> front;
  const int32_t bits = count * (count - 1) / 2;
  for (uint32_t plan = 0; plan < (1U << bits); ++plan) {
    std::vector<OpId> runs;
    int32_t bit = 0;
    for (int32_t stage = 0; stage < count; ++stage) {
      for (int32_t op = 0; op < stage; ++op, ++bit) {
        if ((plan >> bit & 1) != 0) runs.emplace_back(op);
      }
      runs.emplace_back(stage);
    }
    const Result<Simulation> simulation = simulator.Run(runs);
    if (!simulation.ok()) continue;
    const auto [at, is_new] = front.try_emplace(simulation->peak, simulation->cost);
    if (!is_new) at->second = std::min(at->second, simulation->cost);
  }
  Cost least = Cost::Max();
  for (auto& [peak, cost] : front) cost = least = std::min(least, cost);
  return front;
}

// Compares the solver with the front at each of its peaks, and at the least peak.
void CheckFront(const JointGraph& graph) {
  const std::map<Bytes, Cost> front = FrontOfAllPlans(graph);
  const auto solver = PrepareCheckmateRuns(graph, {}).value();
  Simulator simulator(graph);
  const RunOutcome least = solver->Solve(solver->knob().min, {}).value();
  CHECK(least.is_optimal);
  CHECK(simulator.Run(least.runs)->peak == front.begin()->first);
  CHECK(simulator.Run(least.runs)->cost == front.begin()->second);
  for (const auto& point : front) {
    CAPTURE(point.first.count());
    const int64_t limit = std::clamp(point.first.count(), solver->knob().min, solver->knob().max);
    const RunOutcome outcome = solver->Solve(limit, {}).value();
    CHECK(outcome.is_optimal);
    CHECK(simulator.Run(outcome.runs)->peak <= point.first);
    CHECK(simulator.Run(outcome.runs)->cost == point.second);
  }
}

PlanRequest Within(const Budget& budget) {
  PlanRequest request;
  request.algorithm = "checkmate";
  request.budget = budget;
  return request;
}

}  // namespace

TEST_CASE("checkmate: it finds the best of all plans in stages, on random graphs") {
  if (!HasMipSolver()) return;
  int compared = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = seed % 15 == 0 ? 6 : 5;
    // With both, an operation that runs again for one of its two values need not remake aliases of
    // the other one, which the program requires.
    (seed % 2 == 0 ? options.alias : options.second_write) = 0;
    const JointGraph graph = RandomJointGraph(rng, options);
    CheckFront(graph);
    compared += static_cast<int>(FrontOfAllPlans(graph).size());
  }
  CHECK(compared > 200);
}

// Keeping everything needs 20 bytes, at the backward of c. Within 16 bytes, a is freed after b has
// read it, and runs again for the backward of b.
TEST_CASE("checkmate: a chain of four, by hand") {
  if (!HasMipSolver()) return;
  const TensorGraph graph = GraphFromText("a:4@5 -> b:4@2 -> c:4@9 -> d:1@1");
  const Plan plan = MakePlan(graph, Within(Budget::Of(Bytes(16))), {}).value();
  CHECK(plan.figures.peak == Bytes(16));
  CHECK(plan.figures.overhead == Cost(5));
  CHECK(plan.figures.is_optimal);
  const Plan all = MakePlan(graph, Within(Budget::Of(Bytes(20))), {}).value();
  CHECK(all.figures.overhead == Cost(0));
}

TEST_CASE("checkmate: large sizes and costs are as exact as small ones") {
  if (!HasMipSolver()) return;
  const TensorGraph small = GraphFromText("a:5@5 -> b:4@2 -> c:7@9 -> d:3@4 -> e:1@1; a -> d");
  const TensorGraph large = GraphFromText(
      "a:5000000000@5000000 -> b:4000000000@2000000 -> c:7000000000@9000000 -> "
      "d:3000000000@4000000 -> e:1000000000@1000000; a -> d");
  const Budget least = {Budget::Kind::kMin, Bytes(0), 0};
  const Plan a = MakePlan(small, Within(least), {}).value();
  const Plan b = MakePlan(large, Within(least), {}).value();
  CHECK(b.figures.peak.count() == a.figures.peak.count() * 1'000'000'000);
  CHECK(b.figures.overhead.count() == a.figures.overhead.count() * 1'000'000);
}

TEST_CASE("checkmate: a graph that is too large is refused by name") {
  std::string text = "n0:10";
  for (int i = 1; i < 40; ++i) text += " -> n" + std::to_string(i) + ":10";
  const Result<Plan> refused = MakePlan(GraphFromText(text), Within({}), {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  if (!HasMipSolver()) return;
  CHECK(refused.error().message.find("limited to 80 operations") != std::string::npos);
}

}  // namespace ckplan
