#include "lib/joint/expand.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/base/rng.h"
#include "lib/joint/simulate_runs.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

KeptSet RandomKeptSet(Rng& rng, const TensorGraph& graph) {
  KeptSet kept;
  const int percent = static_cast<int>(rng.Between(0, 100));
  for (size_t i = 0; i < graph.nodes().size(); ++i) kept.is_kept.push_back(rng.Chance(percent));
  return kept;
}

// A graph whose in-place pairs all name one output of their node, as those of models do.
TensorGraph RandomGraph(Rng& rng) {
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(1, 12));
  TensorGraphParts parts = PartsOf(RandomTensorGraph(rng, options));
  for (Node& node : parts.nodes) {
    std::erase_if(node.in_place, [&](const InPlacePair& pair) {
      return pair.output != node.in_place.front().output;
    });
  }
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("expand: every schedule needs as much memory at its peak as its runs") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomGraph(rng);
    const Expansion expansion = ExpandTensorGraph(graph);
    const Schedule schedule = LowerStrategy(graph, RandomKeptSet(rng, graph));
    const Simulation expected = *Simulator(graph).Run(schedule);
    const std::vector<OpId> runs = RunsOf(expansion, schedule);
    const auto actual = RunSimulator(expansion.graph).Run(runs);
    REQUIRE(actual.ok());
    CHECK(actual->peak == expected.peak);
    CHECK(actual->peak_step == expected.peak_step);
    CHECK(actual->cost - expansion.graph.cost() == expected.overhead);
    CHECK(ScheduleOf(expansion, runs) == schedule);
    CHECK(OwnOrderPeak(expansion.graph) == KeepAllPeak(graph));
  }
}

TEST_CASE("expand: forward in another order than the graph's") {
  //   a → b → d, a → c → d with c before b.
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> d:3; a -> c:5 -> d");
  const std::vector<NodeId> order = {NodeId(0), NodeId(2), NodeId(1), NodeId(3)};
  const Expansion expansion = ExpandTensorGraph(graph, order);
  const Schedule schedule = KeepAllSchedule(order);
  CHECK(RunsOf(expansion, schedule) == OwnOrder(expansion.graph));
  CHECK(ScheduleOf(expansion, OwnOrder(expansion.graph)) == schedule);
  CHECK(OwnOrderPeak(expansion.graph) == Simulator(graph).Run(schedule)->peak);
}

TEST_CASE("expand: a gradient that others pass on is a value of its own once something is added") {
  //   a → b → d, a → d: d passes its gradient to a and to b, and b adds one of its own to a's.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:4 -> d:4; a -> d"));
  parts.nodes[NodeId(2)].gradient_passthrough = parts.nodes[NodeId(2)].inputs;
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const Expansion expansion = ExpandTensorGraph(graph);
  const Operation& b_backward = expansion.graph.op(OpId(5));
  REQUIRE(b_backward.name == "b backward");
  const Value& sum = expansion.graph.value(b_backward.writes.front());
  CHECK(sum.name == "gradient of a");
  // The shared buffer is b's gradient as well, which is read to the end of this step.
  CHECK(sum.alias_of.is_none());
  CHECK(b_backward.workspace == Bytes(4));  // The contribution, before it is added.
}

TEST_CASE("expand: forward nodes that nothing needs run all the same") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:2; a -> dead:3"));
  parts.nodes[NodeId(2)].backward_reads.clear();
  parts.outputs = {parts.nodes[NodeId(1)].outputs.front()};
  const Expansion expansion = ExpandTensorGraph(*TensorGraph::Create(std::move(parts)));
  std::vector<OpId> runs = OwnOrder(expansion.graph);
  CHECK(RunSimulator(expansion.graph).Run(runs).ok());
  runs.erase(runs.begin() + 2);
  CHECK_FALSE(RunSimulator(expansion.graph).Run(runs).ok());
}

}  // namespace ckplan
