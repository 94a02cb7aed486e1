#include "lib/algorithms/best/annealing.h"

#include <doctest/doctest.h>

#include <algorithm>

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

}  // namespace

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
