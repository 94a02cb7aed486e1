#include "lib/problem/schedule/lower.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/naive_simulation.h"
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

// Puts each node in its own block.
RecursiveSplit SplitOfEachNode(const TensorGraph& graph, int32_t kept_per_level) {
  RecursiveSplit split;
  for (const NodeId id : graph.nodes().ids()) split.block_of.push_back(id.index());
  split.block_count = static_cast<int32_t>(graph.nodes().size());
  split.kept_per_level = kept_per_level;
  return split;
}

// Node numbers are a topological order, so it can be cut into blocks anywhere.
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

// Returns whether a forward run's outputs are recomputed before any step reads them.
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

namespace {

// Alg. 2 of Chen et al. line by line, except that a gradient reads the tensors of `backward_reads`.
// The algorithm leaves the order within the copies that one gradient adds to V' open; any
// topological order satisfies it.
class PrintedAlg2 {
 public:
  using Copy = std::pair<NodeId, int32_t>;  // Copy 0 is the node itself.

  PrintedAlg2(const TensorGraph& graph, const IdVector<NodeId, int32_t>& m) : graph_(graph) {
    int32_t most = 0;
    for (const NodeId v : graph.nodes().ids()) {
      newest_.push_back({v, 0});
      pred_[{v, 0}] = NewestInputsOf(v);
      done_.insert({v, 0});
      most = std::max(most, m[v]);
    }
    for (int32_t k = 1; k <= most; ++k) {
      for (const NodeId v : graph.nodes().ids()) {
        if (k > m[v]) continue;
        newest_[v] = {v, k};
        pred_[{v, k}] = NewestInputsOf(v);
      }
    }
  }

  // Returns the copies that the gradient of v adds to V'. Callers ask for gradients in reverse
  // order.
  std::set<Copy> AddedBy(NodeId v) {
    std::set<Copy> added;
    std::vector<Copy> open;
    for (const TensorId read : graph_.node(v).backward_reads) {
      const NodeId producer = graph_.tensor(read).producer;
      if (!producer.is_none()) open.push_back(newest_[producer]);
    }
    while (!open.empty()) {
      const Copy copy = open.back();
      open.pop_back();
      if (!done_.insert(copy).second) continue;
      added.insert(copy);
      open.insert(open.end(), pred_[copy].begin(), pred_[copy].end());
    }
    return added;
  }

 private:
  std::vector<Copy> NewestInputsOf(NodeId v) const {
    std::vector<Copy> inputs;
    for (const TensorId input : graph_.node(v).inputs) {
      const NodeId producer = graph_.tensor(input).producer;
      if (!producer.is_none()) inputs.push_back(newest_[producer]);
    }
    return inputs;
  }

  const TensorGraph& graph_;
  IdVector<NodeId, Copy> newest_;  // a[v]
  std::map<Copy, std::vector<Copy>> pred_;
  std::set<Copy> done_;  // V'
};

}  // namespace

//   a ─▶ b ─▶ d     m(a) = 2, m(b) = 1, m(c) = 2, m(d) = 0
//   └──▶ c ──▶┘
//
// Pass k = 1 makes a', b' and c' from a'; pass k = 2 makes a'' and c'' from a''. The gradient of d
// reads a[b] = b', a[c] = c'' and d, so it adds a', b', a'' and c''. The gradient of c reads c''
// and a'', that of b reads b' and a'', that of a reads a''. Nothing more is needed, and c' never
// is.
//
// Each result has 10 bytes. The backward of d needs a'', b', c'', d and the gradients of d, b and
// c.
TEST_CASE("mirror counts: the gradient graph of Alg. 2 with branches, by hand") {
  const TensorGraph graph = GraphFromText("a:10 -> b:10 -> d:10; a -> c:10 -> d");
  IdVector<NodeId, int32_t> m(4);
  for (const NodeId v : graph.nodes().ids()) {
    m[v] = graph.node(v).name == "b" ? 1 : graph.node(v).name == "d" ? 0 : 2;
  }
  const Schedule schedule = LowerMirrorCounts(graph, m);
  CHECK(StepsOf(graph, schedule) == "fa fb fc fd loss fa fb fa fc bd bc bb ba");
  const Simulation simulation = *Simulator(graph).Run(schedule);
  CHECK(simulation.peak == Bytes(70));
  CHECK(simulation.overhead == Cost(4));
}

TEST_CASE("mirror counts: the printed algorithm on random graphs") {
  int copies = 0;
  int allowed = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 14));
    const TensorGraph graph =
        seed % 2 == 0 ? RandomTensorGraph(rng, options) : RandomDag(rng, options.nodes, 30, 20, 9);
    IdVector<NodeId, int32_t> m(graph.nodes().size());
    for (const NodeId v : graph.nodes().ids()) m[v] = static_cast<int32_t>(rng.Between(0, 3));
    const Schedule schedule = LowerMirrorCounts(graph, m);
    PrintedAlg2 printed(graph, m);
    size_t step = graph.nodes().size() + 1;  // After the loss.
    for (size_t i = graph.nodes().size(); i-- > 0;) {
      const NodeId v(i);
      std::multiset<NodeId> expected;
      for (const auto& [node, k] : printed.AddedBy(v)) expected.insert(node);
      std::multiset<NodeId> found;
      for (; schedule.steps[step].kind == StepKind::kForward; ++step) {
        found.insert(schedule.steps[step].node());
      }
      CHECK(found == expected);
      CHECK(schedule.steps[step++] == Step::Backward(v));
      copies += static_cast<int>(found.size());
    }
    for (const NodeId v : graph.nodes().ids()) allowed += m[v];
  }
  CHECK(copies > 1000);
  CHECK(allowed > copies);  // No gradient needs some of the copies.
}

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
