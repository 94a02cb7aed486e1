#include "lib/problem/schedule/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/naive_simulation.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

// Keeps everything and runs backward in the given order.
Schedule BackwardIn(const TensorGraph& graph, const std::vector<int32_t>& order) {
  Schedule schedule;
  for (const NodeId id : graph.nodes().ids()) schedule.steps.push_back(Step::Forward(id));
  schedule.steps.push_back(Step::Loss());
  for (const int32_t node : order) schedule.steps.push_back(Step::Backward(NodeId(node)));
  return schedule;
}

// Counts the valid orders of the backward steps.
int CountOrders(const TensorGraph& graph) {
  std::vector<int32_t> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id.index());
  Simulator simulator(graph);
  int allowed = 0;
  do {
    if (simulator.Run(BackwardIn(graph, order)).ok()) ++allowed;
  } while (std::next_permutation(order.begin(), order.end()));
  return allowed;
}

TensorGraph WithSharedParameter(const TensorGraph& graph, const std::vector<int32_t>& nodes) {
  TensorGraphParts parts = PartsOf(graph);
  for (const int32_t node : nodes) parts.nodes[NodeId(node)].shared_parameters = {0};
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("backward order: contributions to one gradient keep their order, others are free") {
  // The graph in the header has one order.
  CHECK(CountOrders(GraphFromText("a:1 -> b:1 -> e:1; a -> c:1 -> e; a -> d:1 -> e")) == 1);
  // Three chains start at the graph's input, which needs no gradient, so b2 may run before or after
  // c, and so on: 6! / (2! 2! 2!) orders.
  CHECK(CountOrders(GraphFromText("b:1 -> b2:1; c:1 -> c2:1; d:1 -> d2:1")) == 90);
}

TEST_CASE("backward order: nodes that train one parameter keep their order") {
  const TensorGraph chains = GraphFromText("b:1 -> b2:1; c:1 -> c2:1; d:1 -> d2:1");
  // b, c and d are nodes 0, 2 and 4, or wherever the text puts them: their order is fixed, so of
  // the 90 orders those remain in which d runs before c, and c before b.
  std::vector<int32_t> heads;
  for (const NodeId id : chains.nodes().ids()) {
    if (chains.node(id).name.size() == 1) heads.push_back(id.index());
  }
  REQUIRE(heads.size() == 3);
  CHECK(CountOrders(WithSharedParameter(chains, heads)) == 90 / 6);
}

TEST_CASE("backward order: a mirrored schedule computes the gradients of its own forward order") {
  const TensorGraph graph = GraphFromText("a:1 -> b:1 -> d:1; a -> c:1 -> d");
  const std::vector<NodeId> own = {NodeId(0), NodeId(1), NodeId(2), NodeId(3)};
  const std::vector<NodeId> other = {NodeId(0), NodeId(2), NodeId(1), NodeId(3)};
  CHECK(IsMirrored(KeepAllSchedule(own)));
  CHECK(IsMirrored(KeepAllSchedule(other)));
  CHECK(ForwardOrderOfSameGradients(graph, KeepAllSchedule(other)) == other);
  // Forward runs in the other order, backward in the reverse of the graph's.
  Schedule mixed = KeepAllSchedule(own);
  std::swap(mixed.steps[1], mixed.steps[2]);
  CHECK_FALSE(IsMirrored(mixed));
  CHECK(Simulator(graph).Run(mixed).ok());
  CHECK(ForwardOrderOfSameGradients(graph, mixed) == own);
}

TEST_CASE(
    "backward order: a node that only backward needs may run for the first time after the loss") {
  // b is not a result, and its backward reads its own output.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:2; a -> c:1"));
  parts.outputs = {parts.nodes[NodeId(2)].outputs.front()};
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  REQUIRE(graph.node(NodeId(1)).name == "b");
  Schedule late;
  late.steps = {Step::Forward(NodeId(0)),  Step::Forward(NodeId(2)), Step::Loss(),
                Step::Backward(NodeId(2)), Step::Forward(NodeId(1)), Step::Backward(NodeId(1)),
                Step::Backward(NodeId(0))};
  CHECK(Simulator(graph).Run(late)->overhead == Cost(0));
  std::swap(late.steps[4], late.steps[5]);
  CHECK_FALSE(Simulator(graph).Run(late).ok());
}

TEST_CASE("backward order: the simulator, the timeline and the plainest count agree in any order") {
  int free = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 12));
    options.shared_parameter = 20;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Schedule schedule =
        RandomSchedule::Make(rng, graph, static_cast<int>(rng.Between(0, 20)));
    const Result<Simulation> simulation = Simulator(graph).Run(schedule);
    REQUIRE(simulation.ok());
    NaiveSimulation naive(graph, schedule);
    CHECK(simulation->peak == naive.Peak());
    CHECK(simulation->overhead == naive.Overhead());
    const Timeline timeline = BuildTimeline(graph, schedule);
    CHECK(timeline.peak == simulation->peak);
    CHECK(timeline.peak_step == simulation->peak_step);
    free += IsMirrored(schedule) ? 0 : 1;
  }
  CHECK(free > 1000);
}

}  // namespace ckplan
