#include "lib/problem/schedule/canonical_strategy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
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
  // L = {a}: its successors are b and c; b, the other predecessor of c, lies outside L as well.
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
      case StepKind::kRun:
      case StepKind::kOut:
      case StepKind::kDrop:
      case StepKind::kIn:
        FAIL("a step of a joint graph in the schedule of a forward graph");
    }
  }
  return text;
}

// Any cuts of the order of the nodes make lower sets.
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
