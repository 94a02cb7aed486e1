#include "lib/planning/algorithms/best/min_cut_order.h"

#include <doctest/doctest.h>

#include "lib/planning/algorithms/best/certificates.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/best/brute_force.h"

namespace ckplan {

TEST_CASE("min-cut order: a valid order, no worse than the own one, with the reported peak") {
  int least = 0;
  int better = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomSmallGraph(rng, static_cast<int>(rng.Between(3, 8)));
    const RunProblem problem(graph);
    const OrderWithPeak found = FindMinCutOrder(problem);
    const Runs own = RequiredOwnOrder(problem);
    CHECK(found.order.size() == own.size());
    const Simulation simulation = Simulator(graph).Run(found.order).value();
    CHECK(simulation.peak.count() == found.peak);
    const int64_t own_peak = Simulator(graph).Run(own)->peak.count();
    CHECK(found.peak <= own_peak);
    const int64_t optimum = ExhaustiveMinPeakOnce(problem);
    CHECK(found.peak >= optimum);
    if (found.peak == optimum) ++least;
    if (found.peak < own_peak) ++better;
  }
  CHECK(least > 500);
  CHECK(better > 30);
}

TEST_CASE("min-cut order: larger graphs, whose peak it lowers") {
  int better = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomSmallGraph(rng, 120);
    const RunProblem problem(graph);
    const OrderWithPeak found = FindMinCutOrder(problem, {.seed = seed, .starts = 4});
    CHECK(Simulator(graph).Run(found.order)->peak.count() == found.peak);
    CHECK(found.peak >= FindCertificates(problem).least_peak_once_any_order);
    if (found.peak < Simulator(graph).Run(RequiredOwnOrder(problem))->peak.count()) ++better;
  }
  CHECK(better > 10);
}

TEST_CASE("min-cut order: the same seed gives the same order, and little work still gives one") {
  Rng rng(7);
  const JointGraph graph = RandomSmallGraph(rng, 60);
  const RunProblem problem(graph);
  CHECK(FindMinCutOrder(problem, {.seed = 3}).order == FindMinCutOrder(problem, {.seed = 3}).order);
  const OrderWithPeak hasty = FindMinCutOrder(problem, {.max_work = 100});
  CHECK(Simulator(graph).Run(hasty.order)->peak.count() == hasty.peak);
}

}  // namespace ckplan
