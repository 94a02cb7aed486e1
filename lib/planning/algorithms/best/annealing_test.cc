#include "lib/planning/algorithms/best/annealing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/eviction.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/best/random_steps.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

constexpr uint64_t kSmallSteps = Instances(uint64_t{100});
constexpr uint64_t kPlans = Instances(uint64_t{40});
// On random layered steps, a tenth of the moves also comes within 1 % of the best.
constexpr int64_t kMovesOfLayers = kHasSanitizers ? 40'000 : 400'000;

}  // namespace

TEST_CASE("annealing: finds the optimum of small steps in any order") {
  uint64_t reruns = 0;
  for (uint64_t seed = 0; seed < kSmallSteps; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(4, 8));
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs order = RandomOrder(&rng, graph);
    const int64_t budget = PeakOf(problem, order) * rng.Between(60, 95) / 100;
    const std::optional<int64_t> least = ExhaustiveMinCost(problem, budget);
    AnnealOptions anneal;
    anneal.moves = 20'000;
    // Each of eight runs is a large part of the total time.
    anneal.start_temperature = 0.1;
    const AnnealOutcome outcome = Anneal(problem, budget, std::vector<Runs>(4, order), anneal);
    CHECK((outcome.peak <= budget) == least.has_value());
    if (!least) continue;
    CHECK(outcome.cost == *least);
    reruns += *least > problem.total_cost ? 1 : 0;
  }
  CHECK(reruns > kSmallSteps / 30);
}

TEST_CASE("annealing: random steps of layers on 90 % of their memory") {
  // The costs that longer searches found in the graph's own order; in a free order, nothing is
  // recomputed.
  for (const auto& row : {std::pair(0, 789), {1, 681}}) {
    const int seed = row.first;
    const int own_order_cost = row.second;
    CAPTURE(seed);
    Rng rng(static_cast<uint64_t>(seed));
    RandomStepOptions options;
    options.op_count = 80;
    options.span = 20;
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs order = OwnOrder(graph);
    const int64_t budget = PeakOf(problem, order) * 9 / 10;
    const std::vector<Runs> starts = {order, BestEviction(problem, order, budget).value()};
    AnnealOptions anneal;
    anneal.moves = kMovesOfLayers;
    const AnnealOutcome free = Anneal(problem, budget, starts, anneal);
    CHECK(free.peak <= budget);
    CHECK(free.cost == problem.total_cost);
    anneal.free_order = false;
    const AnnealOutcome fixed = Anneal(problem, budget, starts, anneal);
    CHECK(fixed.peak <= budget);
    CHECK(fixed.cost <= own_order_cost + own_order_cost / 100);
  }
}

TEST_CASE("annealing: it returns a plan with the reported figures, no worse than its starts") {
  for (uint64_t seed = 0; seed < kPlans; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(3, 40));
    options.span = 10;
    options.percent_in_place = 20;
    options.percent_two_writes = 10;
    options.percent_single_runs = 10;
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs order = RandomOrder(&rng, graph);
    const int64_t budget = PeakOf(problem, order) * rng.Between(60, 95) / 100;
    std::vector<Runs> starts = {order};
    const std::optional<Runs> evicted = BestEviction(problem, order, budget);
    if (evicted) starts.push_back(*evicted);
    AnnealOptions anneal;
    anneal.moves = 4'000;
    anneal.seed = seed;
    anneal.free_order = seed % 2 == 0;
    const AnnealOutcome outcome = Anneal(problem, budget, starts, anneal);
    const Result<Simulation> simulation = Simulator(graph).Run(outcome.runs);
    REQUIRE(simulation.ok());
    CHECK(simulation->peak.count() == outcome.peak);
    CHECK(simulation->cost.count() == outcome.cost);
    if (!anneal.free_order) CHECK(FirstRunsOf(graph, outcome.runs) == order);
    CHECK(outcome.peak <= std::max(budget, PeakOf(problem, order)));
    if (evicted) {
      CHECK(outcome.peak <= budget);
      CHECK(outcome.cost <= CostOf(problem, *evicted));
    }
    CHECK(Anneal(problem, budget, starts, anneal).runs == outcome.runs);
  }
}

TEST_CASE("annealing: a move of an operation with thousands of results counts as many") {
  constexpr int32_t kResults = 2'000;
  JointGraphParts parts;
  const auto add = [&](std::vector<ValueId> reads, int32_t results) {
    Operation op;
    op.file_id = static_cast<int64_t>(parts.ops.size());
    op.cost = Cost(1);
    op.reads = std::move(reads);
    for (int32_t i = 0; i < results; ++i) {
      Value value;
      value.file_id = static_cast<int64_t>(parts.values.size());
      value.bytes = Bytes(1);
      op.writes.push_back(parts.values.push_back(std::move(value)));
    }
    return parts.ops[parts.ops.push_back(std::move(op))].writes;
  };
  std::vector<ValueId> made;
  for (const ValueId part : add({}, kResults)) made.push_back(add({part}, 1).front());
  parts.results = add(made, 1);
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const RunProblem problem(graph);
  const std::vector<Runs> starts = {OwnOrder(graph)};
  AnnealOptions options;
  options.moves = 10'000;
  CHECK(Anneal(problem, 1, starts, options).moves < options.moves / 2);
}

TEST_CASE("annealing: a stop ends it with the best so far") {
  Rng rng(1);
  const JointGraph graph = MakeRandomStep(&rng, {});
  const RunProblem problem(graph);
  const std::vector<Runs> starts = {OwnOrder(graph), RandomOrder(&rng, graph)};
  AnnealOptions options;
  options.moves = 1'000'000'000;
  std::stop_source source;
  int polls = 0;
  const StopScope scope(source.get_token(), [&](int64_t) {
    if (++polls == 20) source.request_stop();
  });
  const AnnealOutcome outcome = Anneal(problem, 1, starts, options);
  CHECK(outcome.moves < 10'000);
  CHECK(outcome.peak <= PeakOf(problem, starts[0]));
  CHECK(FlatSimulator(problem).IsValid(outcome.runs));
}

}  // namespace ckplan
