#include "lib/problem/schedule/unfold.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

#include "lib/base/rng.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

TensorGraph WithOps(const TensorGraph& graph, const std::vector<std::string>& ops) {
  TensorGraphParts parts = PartsOf(graph);
  for (const NodeId id : parts.nodes.ids()) {
    parts.nodes[id].op = ops[static_cast<size_t>(id.index()) % ops.size()];
  }
  return TensorGraph::Create(std::move(parts)).value();
}

TensorGraph RandomNet(Rng& rng) {
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(1, 14));
  const TensorGraph graph = RandomTensorGraph(rng, options);
  constexpr std::array kOps = {"Conv", "BatchNormalization", "Relu", "MaxPool"};
  std::vector<std::string> ops;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    ops.emplace_back(kOps[static_cast<size_t>(rng.Between(0, 3))]);
  }
  return WithOps(graph, ops);
}

}  // namespace

TEST_CASE("unfold: a kept layer keeps its result, and if all are kept, nothing is dropped") {
  const TensorGraph graph = WithOps(GraphFromText("a:4 -> b:4 -> c:4 -> d:4"), {"Conv", "Relu"});
  const LayerFold fold = FoldLayers(graph);
  REQUIRE(fold.graph.nodes().size() == 2);
  const Strategy first =
      Unfold(fold, KeptSet{IdVector<NodeId, bool>(std::vector<bool>{true, false})});
  CHECK(std::get<KeptSet>(first).is_kept ==
        IdVector<NodeId, bool>(std::vector<bool>{false, true, false, false}));
  const Strategy all = Unfold(fold, KeptSet{IdVector<NodeId, bool>(std::vector<bool>{true, true})});
  CHECK(std::get<KeptSet>(all).is_kept == IdVector<NodeId, bool>(4, true));
}

TEST_CASE("unfold: only the results of layers are kept between segments") {
  const TensorGraph graph = WithOps(GraphFromText("a:4 -> b:4 -> c:4 -> d:4"), {"Conv", "Relu"});
  const LayerFold fold = FoldLayers(graph);
  const Strategy strategy =
      Unfold(fold, LowerSetSequence{IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 1}), 2});
  const auto& sequence = std::get<LowerSetSequence>(strategy);
  CHECK(sequence.segment_of == IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 0, 1, 1}));
  CHECK(KeptBy(graph, sequence) ==
        IdVector<NodeId, bool>(std::vector<bool>{false, true, true, true}));
}

TEST_CASE("unfold: a schedule runs a layer's nodes in order, and backward in reverse") {
  const TensorGraph graph = WithOps(GraphFromText("a:4 -> b:4"), {"Conv", "Relu"});
  const LayerFold fold = FoldLayers(graph);
  const Strategy strategy = Unfold(fold, KeepAllSchedule({NodeId(0)}));
  CHECK(std::get<Schedule>(strategy) == KeepAllSchedule({NodeId(0), NodeId(1)}));
}

TEST_CASE("unfold: every decision on layers is a valid training step of the nodes") {
  Rng rng(20260501);
  int folded = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const TensorGraph graph = RandomNet(rng);
    const LayerFold fold = FoldLayers(graph);
    const size_t layers = fold.graph.nodes().size();
    folded += layers < graph.nodes().size() ? 1 : 0;
    KeptSet kept{IdVector<NodeId, bool>(layers)};
    LowerSetSequence sequence{IdVector<NodeId, int32_t>(layers), 1};
    RecursiveSplit split{IdVector<NodeId, int32_t>(layers), static_cast<int32_t>(layers), 1};
    for (const NodeId layer : fold.graph.nodes().ids()) {
      kept.is_kept[layer] = rng.Chance(50);
      if (layer.index() > 0 && rng.Chance(30)) ++sequence.segment_count;
      sequence.segment_of[layer] = sequence.segment_count - 1;
      split.block_of[layer] = layer.index();
    }
    std::vector<Strategy> strategies = {kept, sequence, split};
    strategies.push_back(LowerStrategy(fold.graph, sequence));
    for (const Strategy& strategy : strategies) {
      // In a layer's schedule, its results may die before a node inside it is read again.
      const Schedule schedule = LowerStrategy(graph, Unfold(fold, strategy));
      const auto simulation = Simulator(graph).Run(schedule);
      CAPTURE(strategy.index());
      REQUIRE_MESSAGE(simulation.ok(), simulation.error().message);
    }
  }
  CHECK(folded > 100);
}

}  // namespace ckplan
