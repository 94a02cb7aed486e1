#include "lib/problem/schedule/canonical_strategy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {

TEST_CASE("canonical: Eq. 1 and Eq. 2 on a chain, worked by hand") {
  // a:4@1 → b:2@3 → c:1@5 → d:8@7, cut after b: V1 = {a, b}, V2 = {c, d}.
  //   U1 = {b};  M1 = 0 + 2 (4 + 2) + M({c}) + M({}) = 13;  M2 = 2 + 2 (1 + 8) = 20
  //   T = T({a}) + T({c, d}) = 1 + 12
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5 -> d:8@7");
  const VertexGraph vertices(graph);
  const IdVector<NodeId, int32_t> segment_of(std::vector<int32_t>{0, 0, 1, 1});
  const CanonicalFigures figures = EvaluateCanonical(vertices, segment_of, 2);
  CHECK(figures.peak == Bytes(20));
  CHECK(figures.overhead == Cost(13));
  CHECK(figures.segment_peaks == std::vector<Bytes>{Bytes(13), Bytes(20)});
}

TEST_CASE("canonical: the last two terms of Eq. 2 may overlap and are both counted") {
  // L = {a}: its successors are b and c. The other predecessor of c, b, is also outside L.
  //   M1 = 2 * 1 + M({b, c}) + M({b}) = 2 + 6 + 2
  const TensorGraph graph = GraphFromText("a:1 -> b:2 -> c:4; a -> c");
  const VertexGraph vertices(graph);
  const IdVector<NodeId, int32_t> segment_of(std::vector<int32_t>{0, 1, 1});
  const CanonicalFigures figures = EvaluateCanonical(vertices, segment_of, 2);
  CHECK(figures.peak == Bytes(13));  // M2 = 1 + 2 * 6.
  CHECK(figures.segment_peaks == std::vector<Bytes>{Bytes(10), Bytes(13)});
}

namespace {

std::string TextOf(const TensorGraph& graph, const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    if (!text.empty()) text += ' ';
    switch (step.kind) {
      case StepKind::kForward:
        text += graph.node(step.node()).name;
        break;
      case StepKind::kLoss:
        text += "loss";
        break;
      case StepKind::kBackward:
        text += "d" + graph.node(step.node()).name;
        break;
      case StepKind::kFree:
        text += "-" + graph.node(graph.tensor(step.tensor()).producer).name;
        break;
      case StepKind::kFreeGradient:
        text += "-d" + graph.node(graph.tensor(step.tensor()).producer).name;
        break;
      case StepKind::kRun:
      case StepKind::kOut:
      case StepKind::kDrop:
      case StepKind::kIn:
        FAIL("a step of a joint graph in the schedule of a forward graph");
    }
  }
  return text;
}

// Every prefix of the node order is a lower set.
LowerSetSequence RandomSequence(Rng& rng, const TensorGraph& graph) {
  LowerSetSequence sequence;
  const int64_t cut_percent = rng.Between(0, 60);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (i > 0 && rng.Between(1, 100) <= cut_percent) ++sequence.segment_count;
    sequence.segment_of.push_back(sequence.segment_count);
  }
  ++sequence.segment_count;
  return sequence;
}

TEST_CASE("without liveness: a sequence is freed and recomputed a segment at a time") {
  //   a → b → c | d → e → f
  const TensorGraph graph = GraphFromText("a:1@1 -> b:1@1 -> c:1@1 -> d:1@1 -> e:1@1 -> f:1@1");
  LowerSetSequence sequence{IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 0, 0, 1, 1, 1}), 2};
  const Schedule schedule = LowerWithoutLiveness(graph, sequence);
  CHECK(TextOf(graph, schedule) ==
        "a b c -a -b d e f loss df de dd -d -e -f a b dc db da -a -b -c");
  // The peak holds c, d, e, f and the gradients of f and e.
  CHECK(Simulator(graph).Run(schedule)->peak == Bytes(4 + 2));
}

TEST_CASE("without liveness: a sequence recomputes the same nodes under both rules of freeing") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const LowerSetSequence sequence = RandomSequence(rng, graph);
    const Schedule batchwise = LowerWithoutLiveness(graph, sequence);
    const auto result = Simulator(graph).Run(batchwise);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    const Simulation with = *Simulator(graph).Run(LowerStrategy(graph, sequence));
    CHECK(result->overhead == with.overhead);
    CHECK(BuildTimeline(graph, batchwise).peak == result->peak);
  }
}

TEST_CASE("without liveness: freeing explicitly never takes less memory than liveness") {
  int more = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    KeptSet kept{IdVector<NodeId, bool>(graph.nodes().size())};
    for (const NodeId id : graph.nodes().ids()) kept.is_kept[id] = rng.Chance(50);
    const Schedule lively = LowerStrategy(graph, kept);
    const Schedule held = LowerWithoutLiveness(graph, kept);
    const auto result = Simulator(graph).Run(held);
    REQUIRE_MESSAGE(result.ok(), result.error().message);
    const Simulation with = *Simulator(graph).Run(lively);
    CHECK(result->peak >= with.peak);
    CHECK(result->overhead == with.overhead);
    more += result->peak > with.peak;
    std::vector<Step> steps;
    std::copy_if(held.steps.begin(), held.steps.end(), std::back_inserter(steps),
                 [](const Step& step) { return step.kind != StepKind::kFree; });
    CHECK(steps == lively.steps);
  }
  CHECK(more > 0);
}

// A random graph whose last node is the only one without readers. `own_percent` of the backward
// passes read their own results, all read all inputs.
TensorGraph GraphOfOneSink(Rng& rng, int nodes, int own_percent) {
  TensorGraphParts parts =
      PartsOf(RandomDag(rng, nodes, static_cast<int>(rng.Between(10, 60)), /*max_bytes=*/20, 10));
  Node& last = parts.nodes[NodeId(parts.nodes.size() - 1)];
  for (const TensorId id : parts.tensors.ids()) {
    const bool is_read = !parts.tensors[id].consumers.empty();
    if (!is_read && id != last.outputs.front()) last.inputs.push_back(id);
  }
  parts.outputs = last.outputs;
  for (Node& node : parts.nodes) {
    node.backward_reads = node.inputs;
    if (rng.Chance(own_percent)) node.backward_reads.push_back(node.outputs.front());
  }
  return *TensorGraph::Create(std::move(parts));
}

// Calls `use` with each sequence of lower sets of the graph.
template <typename Use>
void ForEachSequence(const TensorGraph& graph, Use use) {
  const auto nodes = static_cast<int32_t>(graph.nodes().size());
  LowerSetSequence sequence{IdVector<NodeId, int32_t>(graph.nodes().size()), 0};
  const auto is_canonical = [&] {
    std::vector<bool> is_used(graph.nodes().size());
    int32_t last = 0;
    for (const NodeId id : graph.nodes().ids()) {
      const int32_t segment = sequence.segment_of[id];
      is_used[static_cast<size_t>(segment)] = true;
      last = std::max(last, segment);
      for (const TensorId input : graph.node(id).inputs) {
        if (sequence.segment_of[graph.tensor(input).producer] > segment) return false;
      }
    }
    sequence.segment_count = last + 1;
    return std::count(is_used.begin(), is_used.end(), true) == last + 1;
  };
  while (true) {
    if (is_canonical()) use(sequence);
    NodeId digit(0);
    while (digit.index() < nodes && ++sequence.segment_of[digit] == nodes) {
      sequence.segment_of[digit] = 0;
      digit = NodeId(static_cast<size_t>(digit.index()) + 1);
    }
    if (digit.index() == nodes) return;
  }
}

// Returns the peak of the backward steps of a sequence by Eq. 2 and the results of its exception:
// an operation after L_i that reads v in L_i, and whose backward reads its own result, makes this
// result again for v's step, unless term (iv) holds it. Gradients of v's segment before v do not
// exist yet.
Bytes PeakWithOwnResults(const TensorGraph& by_node, const LowerSetSequence& sequence) {
  const CanonicalFigures figures =
      EvaluateCanonical(VertexGraph(by_node), sequence.segment_of, sequence.segment_count);
  const auto result_of = [&](NodeId id) { return by_node.node(id).outputs.front(); };
  Bytes peak = figures.peak;
  for (const NodeId v : by_node.nodes().ids()) {
    const int32_t segment = sequence.segment_of[v];
    const auto is_third = [&](NodeId id) {
      const std::vector<TensorId>& inputs = by_node.node(id).inputs;
      return sequence.segment_of[id] > segment &&
             std::any_of(inputs.begin(), inputs.end(), [&](TensorId input) {
               return sequence.segment_of[by_node.tensor(input).producer] <= segment;
             });
    };
    Bytes needed = figures.segment_peaks[static_cast<size_t>(segment)];
    for (const NodeId id : by_node.nodes().ids()) {
      const bool is_later_step = id < v && sequence.segment_of[id] == segment;
      if (is_later_step) needed -= by_node.tensor(result_of(id)).bytes;
    }
    for (const NodeId reader : by_node.tensor(result_of(v)).consumers) {
      const Tensor& own = by_node.tensor(result_of(reader));
      const std::vector<TensorId>& reads = by_node.node(reader).backward_reads;
      if (std::find(reads.begin(), reads.end(), result_of(reader)) == reads.end()) continue;
      if (!is_third(reader)) continue;
      if (std::none_of(own.consumers.begin(), own.consumers.end(), is_third)) needed += own.bytes;
    }
    peak = std::max(peak, needed);
  }
  return peak;
}

TEST_CASE("without liveness: four layers of 10 in one segment need 80") {
  const TensorGraph graph = WithBackwardByInput(ChainOf({10, 10, 10, 10}));
  const LowerSetSequence sequence{IdVector<NodeId, int32_t>(4), 1};
  const Schedule schedule = LowerWithoutLiveness(graph, sequence);
  CHECK(TextOf(graph, schedule) ==
        "n0 n1 n2 n3 loss dn3 dn2 dn1 dn0 -n0 -n1 -n2 -n3 -dn0 -dn1 -dn2 -dn3");
  CHECK(Simulator(graph).Run(schedule)->peak == Bytes(80));
}

TEST_CASE("without liveness: the peak of every canonical strategy is Eq. 2") {
  int64_t strategies = 0;
  int with_own = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const bool reads_own = seed % 3 == 0;
    const TensorGraph by_node =
        GraphOfOneSink(rng, static_cast<int>(rng.Between(2, 5)), reads_own ? 40 : 0);
    const TensorGraph graph = WithBackwardByInput(by_node);
    Simulator simulator(graph);
    ForEachSequence(graph, [&](const LowerSetSequence& sequence) {
      const Schedule schedule = LowerWithoutLiveness(graph, sequence);
      const auto found = simulator.Run(schedule);
      REQUIRE_MESSAGE(found.ok(), found.error().message);
      const Bytes eq2 =
          EvaluateCanonical(VertexGraph(graph), sequence.segment_of, sequence.segment_count).peak;
      CHECK(found->peak == PeakWithOwnResults(by_node, sequence));
      if (!reads_own) CHECK(found->peak == eq2);
      with_own += found->peak > eq2 ? 1 : 0;
      CHECK(BuildTimeline(graph, schedule).peak == found->peak);
      ++strategies;
    });
  }
  CHECK(strategies > 3000);
  CHECK(with_own > 0);
}

TEST_CASE("by input: B of Eq. 2 bounds the simulated peak of every canonical strategy") {
  int above_by_node = 0;
  int below = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph by_node = GraphOfOneSink(rng, static_cast<int>(rng.Between(2, 14)), 0);
    const TensorGraph graph = WithBackwardByInput(by_node);
    for (int i = 0; i < 4; ++i) {
      const LowerSetSequence sequence = RandomSequence(rng, graph);
      const Bytes eq2 =
          EvaluateCanonical(VertexGraph(graph), sequence.segment_of, sequence.segment_count).peak;
      const auto found = Simulator(graph).Run(LowerStrategy(graph, sequence));
      REQUIRE_MESSAGE(found.ok(), found.error().message);
      CHECK(found->peak <= eq2);
      below += found->peak < eq2 ? 1 : 0;
      above_by_node += Simulator(by_node).Run(LowerStrategy(by_node, sequence))->peak > eq2 ? 1 : 0;
    }
  }
  CHECK(below > 0);
  CHECK(above_by_node > 100);
}

TEST_CASE("by input: any schedule has the timeline's peak, and frees of gradients are checked") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = WithBackwardByInput(RandomTensorGraph(rng));
    KeptSet kept{IdVector<NodeId, bool>(graph.nodes().size())};
    for (const NodeId id : graph.nodes().ids()) kept.is_kept[id] = rng.Chance(50);
    for (const Schedule& schedule : {LowerStrategy(graph, kept), LowerWithoutLiveness(graph, kept),
                                     LowerWithoutLiveness(graph, RandomSequence(rng, graph))}) {
      const auto found = Simulator(graph).Run(schedule);
      REQUIRE_MESSAGE(found.ok(), found.error().message);
      CHECK(BuildTimeline(graph, schedule).peak == found->peak);
    }
  }
  const TensorGraph chain = WithBackwardByInput(ChainOf({10, 10}));
  const Schedule whole =
      LowerWithoutLiveness(chain, LowerSetSequence{IdVector<NodeId, int32_t>(2), 1});
  const auto fault_of = [&](auto change) {
    Schedule schedule = whole;
    change(&schedule.steps);
    return Simulator(chain).Run(schedule).error().message;
  };
  CHECK(fault_of([](auto* steps) { steps->pop_back(); }) ==
        "schedule: the gradient of \"n1\" is never freed");
  CHECK(fault_of([](auto* steps) { steps->push_back(steps->back()); }) ==
        "schedule: step 9 (free-gradient of \"n1\") frees a gradient that is not in memory");
  CHECK(fault_of([](auto* steps) {
          steps->insert(steps->begin() + 4, steps->back());
          steps->pop_back();
        }) ==
        "schedule: step 5 (backward of \"n0\") reads the gradient of \"n1\", which is not in "
        "memory");
}

TEST_CASE("without liveness: keep-all holds what backward reads and drops everything else") {
  //   Only c reads the result of b, and no backward step reads it.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4@1 -> b:2@3 -> c:1@5"));
  parts.nodes[NodeId(1)].backward_reads = {TensorId(0)};
  parts.nodes[NodeId(2)].backward_reads = {TensorId(2)};
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = LowerWithoutLiveness(graph, KeptSet{IdVector<NodeId, bool>(3, true)});
  CHECK(TextOf(graph, schedule) == "a b c -b loss dc -c db da -a");
}

}  // namespace

}  // namespace ckplan
