// Tests what every algorithm guarantees for any budget, on random graphs.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "lib/base/rng.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/planner/alternatives.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/plans/requests.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

Result<Plan> PlanWithinBudget(const TensorGraph& graph, std::string_view algorithm, Bytes budget) {
  return MakePlan(graph, RequestFor(algorithm, Budget::Of(budget)), {});
}

Result<Plan> PlanForMin(const TensorGraph& graph, std::string_view algorithm) {
  return MakePlan(graph, RequestFor(algorithm, {Budget::Kind::kMin, Bytes(0), 0}), {});
}

// Small sizes make many ties. With large sizes, a search skips some settings of a knob.
TensorGraph GraphOf(uint64_t seed, int min_nodes, int max_nodes) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(min_nodes, max_nodes));
  options.max_bytes = seed % 2 == 0 ? 20 : 4000;
  options.max_cost = seed % 3 == 0 ? 10 : 1000;
  return RandomTensorGraph(rng, options);
}

// Returns budgets from the least peak to a fifth above the larger of it and keep-all's peak.
std::set<Bytes> BudgetsAbove(Bytes least, Bytes keep_all) {
  constexpr int64_t kSteps = 8;
  const int64_t range = std::max(least, keep_all).count() * 6 / 5 - least.count();
  std::set<Bytes> budgets;
  for (int64_t i = 0; i <= kSteps; ++i) budgets.insert(least + Bytes(range * i / kSteps));
  return budgets;
}

// Whether the overhead may rise with the budget.
enum class Rising { kMay, kNever };

void CheckAllBudgets(const TensorGraph& graph, std::string_view algorithm, Bytes least,
                     Rising overheads) {
  Cost overhead = Cost::Max();
  for (const Bytes budget : BudgetsAbove(least, KeepAllPeak(graph))) {
    CAPTURE(budget.count());
    const Result<Plan> plan = PlanWithinBudget(graph, algorithm, budget);
    REQUIRE(plan.ok());
    CHECK(plan->figures.peak <= budget);
    CHECK(plan->figures.peak >= least);
    // A memory-centric plan is taken if no time-centric plan fits. It may have less overhead than
    // the time-centric plan for the first budget that one fits.
    if (plan->request.objective == Objective::kMemory) continue;
    if (overheads == Rising::kNever) CHECK(plan->figures.overhead <= overhead);
    overhead = plan->figures.overhead;
  }
}

// Returns false if the algorithm refuses the graph as too large.
bool CheckBudgets(const TensorGraph& graph, std::string_view algorithm, Rising overheads) {
  // Each plan of checkmate is an integer program.
  if (algorithm == "checkmate" && graph.nodes().size() > 6) return false;
  const Result<Plan> min = PlanForMin(graph, algorithm);
  if (!min.ok() && min.error().code == ErrorCode::kUnsupported) return false;
  REQUIRE(min.ok());
  const Bytes least = min->figures.peak;
  CHECK_FALSE(min->figures.is_optimal);
  const Result<Plan> refused = PlanWithinBudget(graph, algorithm, least - Bytes(1));
  REQUIRE_FALSE(refused.ok());
  REQUIRE(refused.error().code == ErrorCode::kInfeasible);
  CHECK(refused.error().remedy.settings.at(0).value == std::to_string(least.count()));
  CheckAllBudgets(graph, algorithm, least, overheads);
  return true;
}

}  // namespace

TEST_CASE("every algorithm: the least budget is the least, and a refusal names it") {
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    int served = 0;
    for (uint64_t seed = 1; seed <= 150; ++seed) {
      CAPTURE(seed);
      served += CheckBudgets(GraphOf(seed, 1, 10), info.name, Rising::kNever) ? 1 : 0;
    }
    const bool is_built = info.name != "checkmate" || HasMipSolver();
    if (is_built) CHECK(served > 75);
  }
}

// The grid of settings begins at 0 and has ratios of 5 / 4. None of them reaches 301 bytes, but a
// setting between two of them does.
TEST_CASE("the least budget has a plan where that lies in a gap of the grid of settings") {
  std::string text;
  for (const int bytes : {20, 8, 8, 40, 1, 70, 1, 5, 4, 2, 10, 90, 7, 7, 90, 8, 90, 4, 8}) {
    text +=
        (text.empty() ? "n" : " -> n") + std::to_string(text.size()) + ":" + std::to_string(bytes);
  }
  const TensorGraph graph = GraphFromText(text);
  REQUIRE(PlanForMin(graph, "chen-greedy")->figures.peak == Bytes(301));
  const Result<Plan> plan = PlanWithinBudget(graph, "chen-greedy", Bytes(301));
  REQUIRE(plan.ok());
  CHECK(plan->figures.peak == Bytes(301));
}

TEST_CASE("a refusal names another algorithm: best if it fits, or the one that comes nearest") {
  std::string text = "n0:10";
  for (int i = 1; i < 16; ++i) text += " -> n" + std::to_string(i) + ":10";
  const TensorGraph graph = GraphFromText(text);
  const Bytes least = PlanForMin(graph, "chen-sqrt")->figures.peak;
  PlanRequest request = RequestFor("recompute-all", Budget::Of(least));
  const Error refusal = MakePlan(graph, request, {}).error();
  REQUIRE(refusal.code == ErrorCode::kInfeasible);
  const Error fits = AddAlternative(refusal, graph, request, {});
  REQUIRE(fits.notes.size() == 1);
  CHECK(fits.notes[0].starts_with("best fits and slows a step by "));
  request.budget = Budget::Of(Bytes(1));
  const Error nobody = AddAlternative(refusal, graph, request, {});
  CHECK(nobody.notes.at(0).starts_with("no other fast algorithm fits: "));
  std::stop_source stopped;
  stopped.request_stop();
  CHECK(AddAlternative(refusal, graph, request, {stopped.get_token()}).notes.empty());
}

TEST_CASE("every algorithm: the least budget is the least where settings are sampled") {
  for (const SolverInfo& info : AllSolvers()) {
    // These two take too long for graphs of this size.
    if (info.name == "kusumoto-exhaustive" || info.name == "checkmate") continue;
    CAPTURE(std::string(info.name));
    // Algorithms with two objectives make twice as many plans.
    const uint64_t last_seed = info.takes_objective ? 4 : 12;
    for (uint64_t seed = 1; seed <= last_seed; ++seed) {
      CAPTURE(seed);
      CHECK(CheckBudgets(GraphOf(seed, 17, 24), info.name, Rising::kMay));
    }
  }
}

}  // namespace ckplan
