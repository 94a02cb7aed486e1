#include "lib/algorithms/best/annealing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/algorithms/best/eviction.h"
#include "lib/algorithms/best/flat_simulation.h"
#include "lib/algorithms/best/random_steps.h"
#include "lib/base/stop.h"
#include "lib/joint/simulate_runs.h"

namespace ckplan {
namespace {

Runs FirstRunsOf(const Runs& runs) {
  Runs first;
  for (const OpId op : runs) {
    if (std::find(first.begin(), first.end(), op) == first.end()) first.push_back(op);
  }
  return first;
}

// The least cost of any plan within the budget, by Dijkstra over what has run and what is in
// memory; -1 if there is none. For steps without in-place writes whose operations may all repeat.
int64_t LeastCost(const RunProblem& problem, int64_t budget) {
  using State = std::pair<uint32_t, uint32_t>;  // Operations that have run; values in memory.
  std::map<State, int64_t> costs = {{{0, 0}, 0}};
  std::set<std::pair<int64_t, State>> open = {{0, {0, 0}}};
  const auto mask_of = [](std::span<const int32_t> ids) {
    uint32_t mask = 0;
    for (const int32_t id : ids) mask |= 1U << id;
    return mask;
  };
  const auto bytes_of = [&](uint32_t values) {
    int64_t bytes = 0;
    for (int32_t v = 0; v < problem.value_count; ++v) {
      if ((values >> v & 1) != 0) bytes += problem.bytes[static_cast<size_t>(v)];
    }
    return bytes;
  };
  uint32_t results = 0;
  for (int32_t v = 0; v < problem.value_count; ++v) {
    if (problem.is_result[static_cast<size_t>(v)]) results |= 1U << v;
  }
  while (!open.empty()) {
    const auto [cost, state] = *open.begin();
    open.erase(open.begin());
    const auto [has_run, live] = state;
    if ((live & results) == results) return cost;
    const auto reach = [&](State next, int64_t next_cost) {
      const auto [known, is_new] = costs.try_emplace(next, next_cost);
      if (!is_new && known->second <= next_cost) return;
      open.erase({known->second, next});
      known->second = next_cost;
      open.insert({next_cost, next});
    };
    for (uint32_t left = live; left != 0; left &= left - 1) {
      reach({has_run, live & ~(left & (~left + 1))}, cost);
    }
    for (int32_t op = 0; op < problem.op_count; ++op) {
      const uint32_t reads = mask_of(problem.reads[op]);
      if ((live & reads) != reads) continue;
      const uint32_t after = live | mask_of(problem.writes[op]);
      if (bytes_of(after) + problem.workspace[static_cast<size_t>(op)] > budget) continue;
      reach({has_run | 1U << op, after}, cost + problem.cost[static_cast<size_t>(op)]);
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("annealing: finds the optimum of small steps in any order") {
  int reruns = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(4, 8));
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs order = RandomOrder(&rng, graph);
    const int64_t budget = PeakOf(problem, order) * rng.Between(60, 95) / 100;
    const int64_t least = LeastCost(problem, budget);
    AnnealOptions anneal;
    anneal.moves = 20'000;
    anneal.start_temperature = 0.1;  // One of eight runs is a large part of all time.
    const AnnealOutcome outcome = Anneal(problem, budget, std::vector<Runs>(4, order), anneal);
    CHECK((outcome.peak <= budget) == (least >= 0));
    if (outcome.peak <= budget) CHECK(outcome.cost == least);
    reruns += least > problem.total_cost ? 1 : 0;
  }
  CHECK(reruns > 3);
}

TEST_CASE("annealing: random steps of layers on 90 % of their memory") {
  // What longer searches found in the graph's own order; nothing runs again in a free one.
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
    anneal.moves = 400'000;
    const AnnealOutcome free = Anneal(problem, budget, starts, anneal);
    CHECK(free.peak <= budget);
    CHECK(free.cost == problem.total_cost);
    anneal.free_order = false;
    const AnnealOutcome fixed = Anneal(problem, budget, starts, anneal);
    CHECK(fixed.peak <= budget);
    CHECK(fixed.cost <= own_order_cost + own_order_cost / 100);
  }
}

TEST_CASE("annealing: what it returns is a plan, as it says, and no worse than its starts") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
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
    const Result<RunSimulation> simulation = RunSimulator(graph).Run(outcome.runs);
    REQUIRE(simulation.ok());
    CHECK(simulation->peak.count() == outcome.peak);
    CHECK(simulation->cost.count() == outcome.cost);
    if (!anneal.free_order) CHECK(FirstRunsOf(outcome.runs) == order);
    CHECK(outcome.peak <= std::max(budget, PeakOf(problem, order)));
    if (evicted) {
      CHECK(outcome.peak <= budget);
      CHECK(outcome.cost <= CostOf(problem, *evicted));
    }
    CHECK(Anneal(problem, budget, starts, anneal).runs == outcome.runs);
  }
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
  const StopScope scope(source.get_token(), [&] {
    if (++polls == 20) source.request_stop();
  });
  const AnnealOutcome outcome = Anneal(problem, 1, starts, options);
  CHECK(outcome.moves < 10'000);
  CHECK(outcome.peak <= PeakOf(problem, starts[0]));
  CHECK(FlatSimulator(problem).IsValid(outcome.runs));
}

}  // namespace ckplan
