#include "lib/problem/schedule/lower_checkpoints.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/naive_simulation.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/step_text.h"

namespace ckplan {
namespace {

IdVector<NodeId, int32_t> Regions(std::vector<int32_t> regions) {
  return IdVector<NodeId, int32_t>(std::move(regions));
}

// Makes this graph, but the backward of each node reads only its inputs, as that of a convolution
// does.
TensorGraph ReadingInputs(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  for (Node& node : parts.nodes) node.backward_reads = node.inputs;
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("checkpoints: a region runs again when its backward begins, at once and in order") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@1 -> d:1@1");
  const Schedule schedule = LowerCheckpoints(graph, Regions({-1, 0, 0, -1}));
  CHECK(StepsOf(graph, schedule) == "fa fb fc fd loss bd fb fc bc bb ba");
  CHECK(Simulator(graph).Run(schedule)->overhead == Cost(4));
}

TEST_CASE("checkpoints: it runs up to the last node that its backward reads") {
  const TensorGraph graph =
      ReadingInputs(GraphFromText("a:4@1 -> b:2@3 -> c:1@1 -> d:1@1; b -> e:1@1 -> d"));
  // The backward of c reads b; no node in the region reads c.
  CHECK(StepsOf(graph, LowerCheckpoints(graph, Regions({-1, 0, 0, -1, -1}))) ==
        "fa fb fc fe fd loss bd be fb bc bb ba");
  // A region of one node reads none of its own results.
  CHECK(LowerCheckpoints(graph, Regions({-1, -1, 0, -1, -1})) ==
        LowerCheckpoints(graph, Regions({-1, -1, -1, -1, -1})));
}

TEST_CASE(
    "checkpoints: a node before the last one that is read runs again even if nothing reads it") {
  //  a → c → e      only the backward of d reads anything, which is b; e is in no region
  //  └─▶ b → d
  TensorGraphParts parts = PartsOf(GraphFromText("a:1 -> c:1 -> e:1; a -> b:1 -> d:1"));
  for (Node& node : parts.nodes) {
    node.backward_reads = node.name == "d" ? node.inputs : std::vector<TensorId>{};
  }
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  IdVector<NodeId, int32_t> regions(graph.nodes().size(), 0);
  for (const NodeId node : graph.nodes().ids()) {
    if (graph.node(node).name == "e") regions[node] = -1;
  }
  CHECK(StepsOf(graph, LowerCheckpoints(graph, regions)) ==
        "fa fc fe fb fd loss fa fc fb bd bb be bc ba");
}

TEST_CASE("checkpoints: regions run again in the order of their backward") {
  const TensorGraph graph = GraphFromText("a:1 -> b:1 -> c:1 -> d:1");
  CHECK(StepsOf(graph, LowerCheckpoints(graph, Regions({1, 1, 0, 0}))) ==
        "fa fb fc fd loss fc fd bd bc fa fb bb ba");
}

TEST_CASE(
    "checkpoints: any regions of any graph make a valid step that runs a node twice at most") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    IdVector<NodeId, int32_t> regions(graph.nodes().size());
    for (int32_t& region : regions) region = static_cast<int32_t>(rng.Between(-1, 2));
    const Schedule schedule = LowerCheckpoints(graph, regions);
    const Result<Simulation> simulation = Simulator(graph).Run(schedule);
    REQUIRE(simulation.ok());
    CHECK(simulation->peak == NaiveSimulation(graph, schedule).Peak());
    std::vector<int> runs(graph.nodes().size(), 0);
    Cost twice;
    for (const Step& step : schedule.steps) {
      if (step.kind != StepKind::kForward) continue;
      if (++runs[static_cast<size_t>(step.index)] == 2)
        twice += graph.node(step.node()).forward_cost;
      CHECK(runs[static_cast<size_t>(step.index)] <= (regions[step.node()] < 0 ? 1 : 2));
    }
    CHECK(simulation->overhead == twice);
  }
}

}  // namespace ckplan
