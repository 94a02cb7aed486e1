#include "lib/algorithms/best/rerun_aliases.h"

#include <doctest/doctest.h>

#include "lib/algorithms/best/flat_simulation.h"
#include "lib/algorithms/best/random_steps.h"
#include "lib/joint/simulate_runs.h"

namespace ckplan {

TEST_CASE("best: with aliases made again, a plan needs no more than the flat simulator says") {
  int helped = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(3, 25));
    options.percent_aliases = 30;
    options.percent_two_writes = 10;
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs runs = WithReruns(&rng, graph, RandomOrder(&rng, graph), options.op_count);
    if (!FlatSimulator(problem).IsValid(runs)) continue;
    const int64_t flat = PeakOf(problem, runs);
    RunSimulator simulator(graph);
    const Result<RunSimulation> repaired = simulator.Run(RerunAliases(graph, runs));
    REQUIRE(repaired.ok());
    CHECK(repaired->peak.count() <= flat);
    helped += simulator.Run(runs)->peak.count() > flat ? 1 : 0;
  }
  CHECK(helped > 5);
}

TEST_CASE("best: without aliases nothing more runs") {
  Rng rng(1);
  const JointGraph graph = MakeRandomStep(&rng, {});
  const Runs runs = WithReruns(&rng, graph, RandomOrder(&rng, graph), 10);
  CHECK(RerunAliases(graph, runs) == runs);
}

}  // namespace ckplan
