#include "lib/planning/algorithms/best/flat_simulation.h"

#include <doctest/doctest.h>

#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/random_steps.h"

namespace ckplan {

TEST_CASE("best: the flat simulator and the simulator of joint graphs agree") {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(2, 25));
    options.percent_in_place = 40;
    options.percent_two_writes = 20;
    options.percent_single_runs = 10;
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    const Runs runs = InsertReruns(&rng, graph, RandomOrder(&rng, graph), options.op_count);
    const Simulation expected = *Simulator(graph).Run(runs);
    const FlatSimulation actual = FlatSimulator(problem).Run(runs);
    CHECK(actual.peak == expected.peak.count());
    CHECK(actual.peak_step == expected.peak_step);
    CHECK(actual.cost == expected.cost.count());
    CHECK(PeakOf(problem, runs) == actual.peak);
    CHECK(CostOf(problem, runs) == actual.cost);
  }
}

TEST_CASE("best: the flat simulator refuses exactly the sequences that are not plans") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = 8;
    options.percent_single_runs = 20;
    const JointGraph graph = MakeRandomStep(&rng, options);
    const RunProblem problem(graph);
    Runs runs = InsertReruns(&rng, graph, RandomOrder(&rng, graph), 4);
    // The sequence is damaged: a run is missing, or belongs to another operation.
    const auto at = static_cast<size_t>(rng.Between(0, static_cast<int64_t>(runs.size()) - 1));
    if (rng.Chance(50)) {
      runs.erase(runs.begin() + static_cast<int64_t>(at));
    } else {
      runs[at] = OpId(static_cast<size_t>(rng.Between(0, 7)));
    }
    CHECK(FlatSimulator(problem).IsValid(runs) == Simulator(graph).Run(runs).ok());
  }
}

}  // namespace ckplan
