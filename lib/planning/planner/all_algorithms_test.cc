// The suite that every row of the registry must pass, whatever its algorithm.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "lib/base/rng.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

PlanRequest RequestBy(const SolverInfo& info) {
  PlanRequest request;
  request.algorithm = std::string(info.name);
  return request;
}

PlanRequest WithBudget(PlanRequest request, Budget::Kind kind, int64_t bytes = 0) {
  request.budget = {kind, Bytes(bytes), 0};
  return request;
}

TensorGraph GraphOf(uint64_t seed) {
  Rng rng(seed);
  if (seed % 3 == 0) {
    const int edge_percent = static_cast<int>(rng.Between(10, 60));
    const int nodes = static_cast<int>(rng.Between(1, 12));
    return RandomDag(rng, nodes, edge_percent, 20, 9);
  }
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(1, 14));
  return RandomTensorGraph(rng, options);
}

// Returns whether this build has everything that the algorithm needs.
bool IsBuilt(const SolverInfo& info) { return info.name != "checkmate" || HasMipSolver(); }

// Returns whether the algorithm takes too long for a test of many plans: each plan of checkmate is
// an integer program.
bool TakesLong(const SolverInfo& info, const TensorGraph& graph) {
  return info.name == "checkmate" && graph.nodes().size() > 6;
}

// Some algorithms refuse graphs that they could not finish.
bool IsTooLarge(const Result<Plan>& plan) {
  return !plan.ok() && plan.error().code == ErrorCode::kUnsupported;
}

TEST_CASE("all algorithms: an alias means one algorithm, and is no algorithm's name") {
  std::set<std::string_view> seen;
  for (const SolverInfo& info : AllSolvers()) seen.insert(info.name);
  int count = 0;
  for (const SolverInfo& info : AllSolvers()) {
    for (const std::string_view alias : AliasesOf(info.name)) {
      CAPTURE(std::string(alias));
      CHECK(seen.insert(alias).second);
      CHECK((*FindSolver(alias))->name == info.name);
      ++count;
    }
  }
  CHECK(count > 10);
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  PlanRequest request;
  request.algorithm = "vanilla";
  CHECK(MakePlan(graph, request, {})->request.algorithm == "keep-all");
}

}  // namespace

TEST_CASE("registry: names are in order, unique, and found again") {
  const auto solvers = AllSolvers();
  CHECK(std::is_sorted(solvers.begin(), solvers.end(),
                       [](const SolverInfo& a, const SolverInfo& b) { return a.name < b.name; }));
  for (const SolverInfo& info : solvers) {
    CHECK((*FindSolver(info.name))->name == info.name);
    CHECK(info.summary.size() < 72);
  }
  const auto unknown = FindSolver("exact-pd");
  CHECK(unknown.error().code == ErrorCode::kUsage);
  CHECK(unknown.error().message.find("\"exact-dp\"") != std::string::npos);
}

TEST_CASE("every algorithm: its plan without a budget passes the checker") {
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    int served = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      CAPTURE(seed);
      const TensorGraph graph = GraphOf(seed);
      if (TakesLong(info, graph)) continue;
      const auto plan = MakePlan(graph, RequestBy(info), {});
      if (IsTooLarge(plan)) continue;
      REQUIRE(plan.ok());
      ++served;
      CHECK(CheckPlan(graph, *plan).empty());
      CHECK(plan->request.algorithm == info.name);
    }
    if (IsBuilt(info)) CHECK(served > 50);
  }
}

TEST_CASE("every algorithm: decides on layers as well, and its plan passes the checker") {
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    int served = 0;
    int folded = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      CAPTURE(seed);
      TensorGraphParts parts = PartsOf(GraphOf(seed));
      for (const NodeId id : parts.nodes.ids())
        parts.nodes[id].op = id.index() % 2 ? "Relu" : "Conv";
      const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
      if (TakesLong(info, graph)) continue;
      PlanRequest request = RequestBy(info);
      request.granularity = Granularity::kLayer;
      const auto plan = MakePlan(graph, request, {});
      if (IsTooLarge(plan)) continue;
      REQUIRE(plan.ok());
      ++served;
      CHECK(CheckPlan(graph, *plan).empty());
      CHECK(plan->request.granularity == Granularity::kLayer);
      const LayerFold fold = FoldLayers(graph);
      folded += fold.graph.nodes().size() < graph.nodes().size() ? 1 : 0;
      if (info.name == "keep-all") CHECK(plan->figures.overhead == Cost(0));
    }
    if (IsBuilt(info)) CHECK(served > 50);
    if (IsBuilt(info)) CHECK(folded > 10);
  }
}

TEST_CASE("every algorithm: a budget is met, or refused with the least one that is not") {
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    int met = 0;
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      CAPTURE(seed);
      const TensorGraph graph = GraphOf(seed);
      if (TakesLong(info, graph)) continue;
      const Bytes most = KeepAllPeak(graph);
      const auto least = MakePlan(graph, WithBudget(RequestBy(info), Budget::Kind::kMin), {});
      if (IsTooLarge(least)) continue;
      REQUIRE(least.ok());
      Cost previous = Cost::Max();
      for (int64_t share = 1; share <= 4; ++share) {
        const Bytes budget(most.count() * share / 4);
        CAPTURE(budget.count());
        const auto plan =
            MakePlan(graph, WithBudget(RequestBy(info), Budget::Kind::kBytes, budget.count()), {});
        if (!plan.ok()) {
          CHECK(plan.error().code == ErrorCode::kInfeasible);
          CHECK(budget < least->figures.peak);
          continue;
        }
        ++met;
        CHECK(plan->figures.peak <= budget);
        CHECK(plan->request.budget.in_bytes() == budget);
        // Heuristics need not obey this, but a smaller budget must never cost a user less time.
        CHECK(plan->figures.overhead <= previous);
        previous = plan->figures.overhead;
      }
      const auto named = MakePlan(
          graph, WithBudget(RequestBy(info), Budget::Kind::kBytes, least->figures.peak.count()),
          {});
      CHECK(named.ok());
    }
    if (IsBuilt(info)) CHECK(met > 30);
  }
}

TEST_CASE("every algorithm: the same problem gives the same plan, and names do not matter") {
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      CAPTURE(seed);
      const TensorGraph graph = GraphOf(seed);
      if (TakesLong(info, graph)) continue;
      const auto made = MakePlan(graph, RequestBy(info), {});
      if (IsTooLarge(made)) continue;
      const Plan& plan = *made;
      CHECK(*MakePlan(graph, RequestBy(info), {}) == plan);
      TensorGraphParts parts = PartsOf(graph);
      for (Node& node : parts.nodes) node.name = "renamed " + node.name;
      for (Tensor& tensor : parts.tensors) tensor.name = "renamed " + tensor.name;
      Plan renamed = *MakePlan(*TensorGraph::Create(std::move(parts)), RequestBy(info), {});
      CHECK(renamed.labels != plan.labels);
      renamed.labels = plan.labels;
      CHECK(renamed == plan);
    }
  }
}

TEST_CASE("planner: a budget that keep-all meets is met without recomputation") {
  for (const char* algorithm : {"approx-dp", "exact-dp", "chen-sqrt"}) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      CAPTURE(seed);
      const TensorGraph graph = GraphOf(seed);
      PlanRequest request;
      request.algorithm = algorithm;
      request = WithBudget(request, Budget::Kind::kBytes, KeepAllPeak(graph).count());
      CHECK(MakePlan(graph, request, {})->figures.overhead == Cost(0));
    }
  }
}

TEST_CASE("planner: requests that contradict the algorithm are usage errors") {
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> c:1");
  PlanRequest request;
  request.algorithm = "chen-sqrt";
  request.objective = Objective::kMemory;
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.objective = Objective::kTime;
  request.paper_budget.kind = Budget::Kind::kMin;
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.algorithm = "exact-dp";
  request.budget.kind = Budget::Kind::kMin;
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.budget.kind = Budget::Kind::kNone;
  request.paper_budget = {Budget::Kind::kBytes, Bytes(1), 0};
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kInfeasible);
}

TEST_CASE("exact-dp: it never needs a larger paper budget, nor more overhead, than approx-dp") {
  int better = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = GraphOf(seed);
    PlanRequest request;
    request.paper_budget.kind = Budget::Kind::kMin;
    request.algorithm = "approx-dp";
    const Plan approx = *MakePlan(graph, request, {});
    request.algorithm = "exact-dp";
    const Plan least = *MakePlan(graph, request, {});
    CHECK(*least.figures.paper.budget <= *approx.figures.paper.budget);
    request.paper_budget = {Budget::Kind::kBytes, *approx.figures.paper.budget, 0};
    const Plan exact = *MakePlan(graph, request, {});
    CHECK(exact.figures.is_optimal);
    CHECK(exact.figures.paper.overhead <= approx.figures.paper.overhead);
    better += exact.figures.paper.overhead < approx.figures.paper.overhead;
  }
  CHECK(better > 0);
}

TEST_CASE("exact-dp: it equals kusumoto-exhaustive at many budgets, for both objectives") {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto edge_percent = static_cast<int>(rng.Between(20, 70));
    const auto nodes = static_cast<int>(rng.Between(1, 8));
    const TensorGraph graph = RandomDag(rng, nodes, edge_percent, 20, 9);
    PlanRequest request;
    request.paper_budget.kind = Budget::Kind::kMin;
    request.algorithm = "kusumoto-exhaustive";
    const auto least = MakePlan(graph, request, {});
    if (IsTooLarge(least)) continue;
    for (const Objective objective : {Objective::kTime, Objective::kMemory}) {
      for (const int64_t more : {0, 3, 15, 60}) {
        request.objective = objective;
        request.paper_budget = {Budget::Kind::kBytes, *least->figures.paper.budget + Bytes(more),
                                0};
        request.algorithm = "kusumoto-exhaustive";
        const Plan exhaustive = *MakePlan(graph, request, {});
        request.algorithm = "exact-dp";
        const auto exact = MakePlan(graph, request, {});
        REQUIRE(exact.ok());
        CHECK(exact->figures.paper.overhead == exhaustive.figures.paper.overhead);
        ++compared;
      }
    }
    request.paper_budget = {Budget::Kind::kBytes, *least->figures.paper.budget - Bytes(1), 0};
    request.algorithm = "exact-dp";
    CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kInfeasible);
  }
  CHECK(compared > 2000);
}

TEST_CASE("chen-sqrt: four equal segments of a chain of sixteen equal layers") {
  std::string text = "n0:10";
  for (int i = 1; i < 16; ++i) text += " -> n" + std::to_string(i) + ":10";
  const TensorGraph graph = GraphFromText(text);
  PlanRequest request;
  request.algorithm = "chen-sqrt";
  const Plan plan = *MakePlan(graph, request, {});
  CHECK(plan.decisions[NodeId(15)].segment == 3);
  for (int i = 0; i < 16; ++i) CHECK(plan.decisions[NodeId(i)].segment == i / 4);
  CHECK(plan.figures.paper.peak == Bytes(3 * 10 + 4 * 10));  // x + y
  CHECK(plan.figures.overhead == Cost(9));  // Three of four in each segment but the last.
}

}  // namespace ckplan
