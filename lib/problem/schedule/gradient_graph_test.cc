#include "lib/problem/schedule/gradient_graph.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

Simulation RunOnce(const GradientGraph& of) {
  return Simulator(of.graph).Run(OwnOrder(of.graph)).value();
}

}  // namespace

TEST_CASE("gradient graph: the example of Alg. 2, node by node") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@1 -> d:1@1");
  const Schedule schedule =
      LowerMirrorCounts(graph, IdVector<NodeId, int32_t>(std::vector<int32_t>{2, 1, 0, 0}));
  const auto made = BuildGradientGraph(graph, schedule);
  REQUIRE(made.ok());
  std::string names;
  for (const Operation& op : made->graph.ops()) names += op.name + ", ";
  CHECK(names ==
        "a, b, c, d, loss, d backward, a mirror, b mirror, c backward, a mirror 2, b backward, a "
        "backward, ");
  CHECK(made->mirror_of[OpId(6)] == 1);
  CHECK(made->mirror_of[OpId(9)] == 2);
  CHECK(made->mirror_of[OpId(10)] == 0);
  // The mirror of b reads that of a, and c's backward reads the mirror of b.
  CHECK(made->graph.value(made->graph.op(OpId(7)).reads[0]).producer == OpId(6));
  CHECK(made->graph.value(made->graph.op(OpId(8)).reads[0]).producer == OpId(7));
}

TEST_CASE("gradient graph: each operation once needs the memory and the time of the schedule") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomModelGraph(rng);
    IdVector<NodeId, int32_t> counts;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      counts.push_back(static_cast<int32_t>(rng.Between(0, 3)));
    }
    for (const Schedule& schedule :
         {LowerStrategy(graph, RandomKeptSet(rng, graph)), LowerMirrorCounts(graph, counts)}) {
      const Simulation expected = Simulator(graph).Run(schedule).value();
      const auto made = BuildGradientGraph(graph, schedule);
      REQUIRE(made.ok());
      CHECK(made->graph.ops().size() == schedule.steps.size());
      const Simulation actual = RunOnce(*made);
      CHECK(actual.peak == expected.peak);
      CHECK(actual.peak_step == expected.peak_step);
      CHECK(made->graph.cost() == graph.forward_cost() + graph.backward_cost() + expected.overhead);
    }
  }
}

TEST_CASE("gradient graph: orders that are not mirrored need no more than their schedules") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomModelGraph(rng);
    const Schedule schedule = RandomSchedule::Make(rng, graph, 30);
    const auto made = BuildGradientGraph(graph, schedule);
    REQUIRE(made.ok());
    CHECK(RunOnce(*made).peak <= Simulator(graph).Run(schedule)->peak);
  }
}

TEST_CASE("gradient graph: runs of a joint graph need the same memory once each") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const Simulation expected = Simulator(graph).Run(runs).value();
    const auto made = BuildGradientGraph(graph, ScheduleOfRuns(runs));
    REQUIRE(made.ok());
    const Simulation actual = RunOnce(*made);
    CHECK(actual.peak == expected.peak);
    CHECK(actual.cost == expected.cost);
    CHECK(ConstantsOf(made->graph).parameters == ConstantsOf(graph).parameters);
  }
  const TensorGraph forward = GraphFromText("a:4 -> b:2 -> c:1");
  const JointGraph arriving = ExpandWithArrivingGradients(forward).graph;
  const auto made = BuildGradientGraph(arriving, ScheduleOfRuns(OwnOrder(arriving)));
  REQUIRE(made.ok());
  CHECK(made->graph.ops().size() == arriving.ops().size());
  CHECK(KeepAllPeak(made->graph) == KeepAllPeak(arriving));
}

TEST_CASE("gradient graph: refuses backward steps by input") {
  const TensorGraph graph = WithBackwardByInput(GraphFromText("a:4 -> b:2 -> c:1"));
  const auto refused = BuildGradientGraph(graph, KeepAllInOwnOrder(graph));
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.find("by node") != std::string::npos);
}

}  // namespace ckplan
