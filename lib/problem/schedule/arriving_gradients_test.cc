#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/naive_runs.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

JointGraph RandomGraphWithGradients(Rng& rng) {
  RandomJointOptions options;
  options.ops = static_cast<int>(rng.Between(1, 14));
  options.parameter_gradient = 30;
  return RandomJointGraph(rng, options);
}

}  // namespace

TEST_CASE("arriving gradients: they are values that are results, and count as such") {
  int more = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomGraphWithGradients(rng);
    const JointGraph arriving = WithArrivingGradients(graph);
    JointGraphParts parts = PartsOf(graph);
    for (const ValueId id : parts.values.ids()) {
      Value& value = parts.values[id];
      if (value.kind != ValueKind::kParameterGradient || value.maker.is_none()) continue;
      value.kind = ValueKind::kValue;
      if (!value.is_result) parts.results.push_back(id);
    }
    const JointGraph as_values = JointGraph::Create(std::move(parts)).value();
    CHECK(arriving.results() == as_values.results());
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const Simulation expected = *Simulator(as_values).Run(runs);
    const Simulation actual = *Simulator(arriving).Run(runs);
    CHECK(actual.peak == expected.peak);
    CHECK(actual.peak_step == expected.peak_step);
    CHECK(BuildTimeline(arriving, runs).peak == expected.peak);
    more += actual.peak > Simulator(graph).Run(runs)->peak;
    CHECK(WithArrivingGradients(arriving) == arriving);
  }
  CHECK(more > 300);
}

TEST_CASE("naive runs: the simulator agrees with the definition, version by version") {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    JointGraph graph = RandomGraphWithGradients(rng);
    if (rng.Chance(30)) graph = WithArrivingGradients(graph);
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const Simulation simulation = *Simulator(graph).Run(runs);
    NaiveRuns naive(graph, runs);
    CHECK(naive.Peak() == simulation.peak);
    CHECK(naive.TotalCost() == simulation.cost);
  }
}

}  // namespace ckplan
