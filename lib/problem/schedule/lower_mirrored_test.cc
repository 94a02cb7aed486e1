#include "lib/problem/schedule/lower_mirrored.h"

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
#include "lib/testing/random_graph.h"
#include "lib/testing/step_text.h"

namespace ckplan {
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
