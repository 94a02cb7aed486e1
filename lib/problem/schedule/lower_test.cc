#include "lib/problem/schedule/lower.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

TensorGraph EqualChain(int32_t layers) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < layers; ++i) {
    vertices.push_back({std::string("n").append(std::to_string(i)), Bytes(1), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  return GraphFromVertices("chain", vertices, edges);
}

// Makes one block of each node.
RecursiveSplit SplitOfEachNode(const TensorGraph& graph, int32_t kept_per_level) {
  RecursiveSplit split;
  for (const NodeId id : graph.nodes().ids()) split.block_of.push_back(id.index());
  split.block_count = static_cast<int32_t>(graph.nodes().size());
  split.kept_per_level = kept_per_level;
  return split;
}

// Node numbers are a topological order, so any cuts of that order make blocks.
RecursiveSplit RandomSplit(Rng& rng, const TensorGraph& graph) {
  RecursiveSplit split;
  const int64_t cut_percent = rng.Between(0, 100);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (i > 0 && rng.Between(1, 100) <= cut_percent) ++split.block_count;
    split.block_of.push_back(split.block_count);
  }
  ++split.block_count;
  split.kept_per_level = static_cast<int32_t>(rng.Between(1, 4));
  return split;
}

// ceil(log_{k+1} n)
int32_t Levels(int32_t blocks, int32_t kept_per_level) {
  int32_t levels = 0;
  for (int64_t reach = 1; reach < blocks; reach *= kept_per_level + 1) ++levels;
  return levels;
}

std::string TextOf(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    text += step.kind == StepKind::kForward ? " f" : step.kind == StepKind::kLoss ? " loss" : " b";
    if (step.kind != StepKind::kLoss) text += std::to_string(step.index);
  }
  return text;
}

// Returns whether a forward run makes outputs that are not read before they are made again.
bool IsUnread(const TensorGraph& graph, const Schedule& schedule, size_t k) {
  const std::vector<TensorId>& outputs = graph.node(schedule.steps[k].node()).outputs;
  for (size_t later = k + 1; later < schedule.steps.size(); ++later) {
    const Step& step = schedule.steps[later];
    if (step == schedule.steps[k]) return true;
    if (step.kind == StepKind::kLoss) continue;
    const Node& node = graph.node(step.node());
    const auto& reads = step.kind == StepKind::kForward ? node.inputs : node.backward_reads;
    for (const TensorId read : reads) {
      if (std::count(outputs.begin(), outputs.end(), read) > 0) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("recursive split: eight blocks with one result kept at each level") {
  const TensorGraph graph = EqualChain(8);
  CHECK(TextOf(LowerRecursiveSplit(graph, SplitOfEachNode(graph, 1))) ==
        " f0 f1 f2 f3 f4 f5 f6 f7 loss b7 b6 f4 b5 b4 f0 f1 f2 b3 b2 f0 b1 b0");
  const IdVector<NodeId, int32_t> range_of = OutermostRanges(SplitOfEachNode(graph, 3));
  for (const NodeId id : graph.nodes().ids()) CHECK(range_of[id] == id.index() / 2);
}

TEST_CASE("recursive split: ranges are as equal as possible") {
  CHECK(CutRange(0, 8, 1) == std::vector<int32_t>{0, 4, 8});
  CHECK(CutRange(3, 10, 2) == std::vector<int32_t>{3, 5, 7, 10});
  CHECK(CutRange(0, 3, 9) == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(CutRange(5, 6, 1) == std::vector<int32_t>{5, 6});
}

// Eq. 3 counts only kept results. A backward step needs more beside them: the end of the chain,
// which no cut counts, and the gradients of the block's output and input.
TEST_CASE("recursive split: equal layers need k log_{k+1} n + 3 and log_{k+1} n runs of each") {
  int tight = 0;
  for (int32_t layers = 1; layers <= 300; ++layers) {
    const TensorGraph graph = EqualChain(layers);
    Simulator simulator(graph);
    for (const int32_t kept : {1, 2, 3, 5, 9}) {
      CAPTURE(layers);
      CAPTURE(kept);
      const Simulation simulation =
          simulator.Run(LowerRecursiveSplit(graph, SplitOfEachNode(graph, kept))).value();
      const int32_t levels = Levels(layers, kept);
      CHECK(simulation.peak.count() <= kept * levels + 3);
      CHECK(simulation.overhead.count() <= layers * levels);
      tight += simulation.peak.count() == kept * levels + 3;
    }
  }
  CHECK(tight > 0);
}

TEST_CASE("recursive split: random graphs get valid steps whose runs are all read") {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 16));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const RecursiveSplit split = RandomSplit(rng, graph);
    const Schedule schedule = LowerRecursiveSplit(graph, split);
    CHECK(Simulator(graph).Run(schedule).ok());
    IdVector<NodeId, int32_t> runs(graph.nodes().size());
    for (size_t k = 0; k < schedule.steps.size(); ++k) {
      if (schedule.steps[k].kind != StepKind::kForward) continue;
      if (++runs[schedule.steps[k].node()] > 1) CHECK_FALSE(IsUnread(graph, schedule, k));
    }
    const int32_t levels = Levels(split.block_count, split.kept_per_level);
    for (const int32_t count : runs) CHECK(count <= levels + 2);
  }
}

}  // namespace ckplan
