#include "lib/problem/schedule/lower_checkpoints.h"

#include <doctest/doctest.h>

#include <algorithm>
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
  CHECK(allowed > copies);  // Some copies are needed by no gradient.
}

}  // namespace ckplan
