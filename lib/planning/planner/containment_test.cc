// An algorithm whose class of plans contains another's never does worse by the simulator.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "lib/base/rng.h"
#include "lib/planning/planner/one_algorithm.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/requests.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

// On graphs with more nodes, kusumoto-exhaustive tries too many sequences for a test of thousands
// of graphs.
constexpr int kMaxExhaustive = 7;

struct Pair {
  std::string_view larger;
  std::string_view smaller;
  Objective objective = Objective::kAuto;
};

// Two algorithms that find the same optimum contain each other.
constexpr Pair kPairs[] = {
    {"exact-dp", "approx-dp"},
    {"exact-dp", "approx-dp", Objective::kTime},
    {"exact-dp", "approx-dp", Objective::kMemory},
    {"kusumoto-exhaustive", "approx-dp"},
    {"kusumoto-exhaustive", "exact-dp"},
    {"kusumoto-exhaustive", "exact-dp", Objective::kMemory},
    {"exact-dp", "kusumoto-exhaustive"},
    {"exact-dp", "kusumoto-exhaustive", Objective::kMemory},
    {"feng-acg", "feng-linear"},
    {"chen-greedy", "chen-search"},
};

// The algorithms that have a setting at which everything is kept.
constexpr std::string_view kKeepingAll[] = {
    "approx-dp",           "chen-count", "chen-frontier", "chen-greedy", "chen-keep-costly",
    "chen-sqrt",           "dtr",        "exact-dp",      "feng-acg",    "feng-linear",
    "kusumoto-exhaustive", "rotor",      "torch-budget"};

// Makes a chain with connections that skip a node, as in blocks of residual networks.
TensorGraph ChainWithSkips(Rng& rng, int nodes) {
  std::string text;
  for (int i = 0; i < nodes; ++i) {
    text += (i > 0 ? " -> n" : "n") + std::to_string(i) + ":" + std::to_string(rng.Between(1, 20)) +
            "@" + std::to_string(rng.Between(1, 9));
  }
  for (int i = 0; i + 2 < nodes; ++i) {
    if (rng.Between(0, 3) > 0) continue;
    text += "; n" + std::to_string(i) + " -> n" + std::to_string(i + 2);
  }
  return GraphFromText(text);
}

TensorGraph ContainmentGraph(uint64_t seed, int min_nodes, int max_nodes) {
  Rng rng(seed);
  const int nodes = static_cast<int>(rng.Between(min_nodes, max_nodes));
  if (seed % 3 == 0) return RandomDag(rng, nodes, static_cast<int>(rng.Between(10, 60)), 20, 9);
  if (seed % 3 == 1) return ChainWithSkips(rng, nodes);
  RandomGraphOptions options;
  options.nodes = nodes;
  return RandomTensorGraph(rng, options);
}

Result<Plan> PlanBy(std::string_view algorithm, Objective objective, const TensorGraph& graph,
                    Bytes budget) {
  PlanRequest request = RequestFor(algorithm, Budget::Of(budget));
  request.objective = objective;
  return MakePlan(graph, request, {});
}

// Compares the two algorithms at keep-all's peak, and then one byte below the peak of each plan
// that the smaller one finds. Returns the number of compared plans.
int CheckAtEveryBudget(const Pair& pair, const TensorGraph& graph) {
  int checked = 0;
  for (Bytes budget = KeepAllPeak(graph);; ++checked) {
    CAPTURE(budget.count());
    const Result<Plan> smaller = PlanBy(pair.smaller, pair.objective, graph, budget);
    if (!smaller.ok()) return checked;
    const Result<Plan> larger = PlanBy(pair.larger, pair.objective, graph, budget);
    if (!larger.ok() && larger.error().code == ErrorCode::kUnsupported) return checked;
    REQUIRE(larger.ok());
    CHECK(larger->figures.peak <= budget);
    CHECK(larger->figures.overhead <= smaller->figures.overhead);
    budget = smaller->figures.peak - Bytes(1);
  }
}

void CheckGraphs(int min_nodes, int max_nodes, uint64_t graphs, int least_checked) {
  for (const Pair& pair : kPairs) {
    CAPTURE(std::string(pair.larger));
    CAPTURE(std::string(pair.smaller));
    CAPTURE(static_cast<int>(pair.objective));
    const bool is_exhaustive =
        pair.larger == "kusumoto-exhaustive" || pair.smaller == "kusumoto-exhaustive";
    if (is_exhaustive && min_nodes > kMaxExhaustive) continue;
    const int most = is_exhaustive ? std::min(max_nodes, kMaxExhaustive) : max_nodes;
    int checked = 0;
    for (uint64_t seed = 1; seed <= graphs; ++seed) {
      CAPTURE(seed);
      checked += CheckAtEveryBudget(pair, ContainmentGraph(seed, min_nodes, most));
    }
    CHECK(checked > least_checked);
  }
}

}  // namespace

TEST_CASE("containment: the larger class has a plan at every budget, and adds no more time") {
  const auto graphs = static_cast<uint64_t>(Instances(2000));
  CheckGraphs(2, 10, graphs, static_cast<int>(graphs));
}

TEST_CASE("containment: also on graphs whose settings are sampled") {
  // Some graphs have a single budget for some pair, so a few graphs would check next to nothing.
  constexpr int kGraphs = kHasSanitizers ? 4 : 12;
  CheckGraphs(17, 19, kGraphs, kGraphs);
}

TEST_CASE("containment: whatever has a setting that keeps all keeps all where that fits") {
  for (const std::string_view algorithm : kKeepingAll) {
    CAPTURE(std::string(algorithm));
    int checked = 0;
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(Instances(200)); ++seed) {
      CAPTURE(seed);
      checked += CheckAtEveryBudget({algorithm, "keep-all"}, ContainmentGraph(seed, 2, 12));
    }
    CHECK(checked > Instances(100));
  }
}

TEST_CASE("containment: the curve of the larger class is nowhere above that of the smaller") {
  int compared = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(Instances(80)); ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = ContainmentGraph(seed, 3, 11);
    PlanRequest request;
    request.algorithm = "exact-dp";
    const auto larger = PointsByBudgets(graph, request, {});
    request.algorithm = "approx-dp";
    const auto smaller = PointsByBudgets(graph, request, {});
    REQUIRE(larger.ok());
    REQUIRE(smaller.ok());
    for (const CurvePoint& point : *smaller) {
      const bool is_matched = std::any_of(larger->begin(), larger->end(), [&](const auto& other) {
        return other.peak <= point.peak && other.overhead <= point.overhead;
      });
      CHECK(is_matched);
      ++compared;
    }
  }
  CHECK(compared > Instances(300));
}

}  // namespace ckplan
