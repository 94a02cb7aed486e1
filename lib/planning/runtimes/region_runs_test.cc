#include "lib/planning/runtimes/region_runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

// The region of these nodes of a forward graph, in its expansion.
OpRegion RegionOf(const Expansion& step, const std::vector<int32_t>& nodes, Rerun rerun) {
  OpRegion region;
  region.rerun = rerun;
  for (const OpId id : step.graph.ops().ids()) {
    const Step& of = step.step_of[static_cast<size_t>(id.index())];
    if (std::find(nodes.begin(), nodes.end(), of.index) == nodes.end()) continue;
    if (of.kind == StepKind::kForward) region.forward.push_back(id);
    if (of.kind == StepKind::kBackward) region.backward.push_back(id);
  }
  return region;
}

// "a b loss b' a'", without the operations that the class adds.
std::string NamesOf(const Expansion& step, const std::vector<OpId>& runs) {
  std::string text;
  for (const OpId id : runs) {
    if (static_cast<size_t>(id.index()) >= step.graph.ops().size()) continue;
    std::string name = step.graph.op(id).name;
    const size_t end = name.find(" backward");
    if (end != std::string::npos) name = name.substr(0, end) + "'";
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

Simulation SimulationOf(const RegionRuns& runs, const std::vector<CheckpointedRegion>& regions) {
  return Simulator(runs.graph()).Run(runs.RunsOf(regions)).value();
}

// As of a convolution: the backward of a node reads only its inputs.
TensorGraph ReadsInputs(std::string_view text) {
  TensorGraphParts parts = PartsOf(GraphFromText(text));
  for (Node& node : parts.nodes) node.backward_reads = node.inputs;
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("region runs: nothing is checkpointed, nothing runs again") {
  const Expansion step = ExpandTensorGraph(GraphFromText("a:4@1 -> b:2@3 -> c:1@1"));
  const RegionRuns runs(step.graph, {RegionOf(step, {1}, Rerun::kUpToLastSaved)});
  CHECK(runs.RunsOf({}) == OwnOrder(step.graph));
}

TEST_CASE("region runs: a region runs again when its backward pass begins, up to what that reads") {
  const Expansion step = ExpandTensorGraph(ReadsInputs("a:4@1 -> b:2@3 -> c:1@1 -> d:1@1"));
  const RegionRuns runs(step.graph, {RegionOf(step, {1, 2}, Rerun::kUpToLastSaved)});
  CHECK(runs.RunAgainCount(0) == 1);
  CHECK(NamesOf(step, runs.RunsOf({{0}})) == "a b c d loss d' b c' b' a'");
  CHECK(SimulationOf(runs, {{0}}).overhead == Cost(3));
}

TEST_CASE("region runs: a whole region runs again where the checkpoint has a backward of its own") {
  const Expansion step = ExpandTensorGraph(ReadsInputs("a:4@1 -> b:2@3 -> c:1@1 -> d:1@1"));
  const RegionRuns runs(step.graph, {RegionOf(step, {1, 2}, Rerun::kWhole)});
  CHECK(NamesOf(step, runs.RunsOf({{0}})) == "a b c d loss d' b c c' b' a'");
  CHECK(SimulationOf(runs, {{0}}).overhead == Cost(4));
}

TEST_CASE("region runs: discarded results are made again for the module that reads them") {
  const Expansion step = ExpandTensorGraph(ReadsInputs("a:4@1 -> b:2@3 -> c:1@1 -> d:1@1"));
  OpRegion region = RegionOf(step, {1}, Rerun::kDiscarded);
  region.readers_backward = RegionOf(step, {2, 3}, Rerun::kWhole).backward;
  const RegionRuns runs(step.graph, {region});
  CHECK(NamesOf(step, runs.RunsOf({{0}})) == "a b c d loss b d' c' b' a'");
}

TEST_CASE("region runs: saved operations do not run again, and their results are kept until then") {
  //  a:1 → b:50 → c:2 → d:1, which all read their inputs only; b is saved, and only c reads it
  const Expansion step = ExpandTensorGraph(ReadsInputs("a:1@1 -> b:50@3 -> c:2@1 -> d:1@1"));
  const RegionRuns runs(step.graph, {RegionOf(step, {1, 2, 3}, Rerun::kUpToLastSaved)});
  const std::vector<bool> saved = {true, false, false};
  CHECK(NamesOf(step, runs.RunsOf({{0, saved}})) == "a b c d loss c d' c' b' a'");
  CHECK(SimulationOf(runs, {{0, saved}}).overhead == Cost(1));
  CHECK(runs.IsReadAgain(0, 0));
  CHECK_FALSE(runs.IsReadAgain(0, 2));
  // While the loss is computed, b is still there: 50 + d + its gradient.
  CHECK(SimulationOf(runs, {{0, saved}}).peak > Bytes(51));
  // Saving both, b is read by no operation that runs again, but is kept all the same.
  CHECK(SimulationOf(runs, {{0, {true, true, false}}}).peak >
        SimulationOf(runs, {{0, {false, true, false}}}).peak - Bytes(50));
}

TEST_CASE("region runs: what a region reads lives until its backward pass has ended") {
  // The backward of b does not read a, but the region holds it.
  TensorGraphParts parts = PartsOf(GraphFromText("a:40@1 -> b:2@1 -> c:2@1 -> d:1@1"));
  for (Node& node : parts.nodes) {
    node.backward_reads =
        node.name == "c" || node.name == "b" ? node.outputs : std::vector<TensorId>{};
  }
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const Expansion step = ExpandTensorGraph(graph);
  const RegionRuns runs(step.graph, {RegionOf(step, {1, 2}, Rerun::kUpToLastSaved)});
  const std::vector<OpId> with_hold = runs.RunsOf({{0}});
  std::vector<OpId> without = with_hold;
  std::erase_if(
      without, [&](OpId id) { return static_cast<size_t>(id.index()) >= step.graph.ops().size(); });
  // The gradient of a is made by the backward of b, while the region still holds a.
  CHECK(Simulator(runs.graph()).Run(with_hold)->peak == Bytes(40 + 40 + 2 + 2));
  CHECK(Simulator(runs.graph()).Run(without)->peak < Bytes(40 + 40 + 2 + 2));
}

TEST_CASE("region runs: a backward of several operations holds what it reads until its end") {
  //  x → y, whose backward reads the gradient g twice: with a, and then with b
  JointGraphParts parts;
  const auto add_value = [&](int64_t bytes) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.bytes = Bytes(bytes);
    return parts.values.push_back(value);
  };
  const auto add_op = [&](Phase phase, std::vector<ValueId> reads, ValueId write) {
    Operation op;
    op.file_id = static_cast<int64_t>(parts.ops.size());
    op.op = "aten.mul.Tensor";
    op.phase = phase;
    op.reads = std::move(reads);
    op.writes = {write};
    parts.ops.push_back(op);
  };
  const ValueId a = add_value(10), b = add_value(20), y = add_value(1), g = add_value(1);
  const ValueId da = add_value(100), db = add_value(100), end = add_value(1);
  add_op(Phase::kForward, {}, a);
  add_op(Phase::kForward, {}, b);
  add_op(Phase::kForward, {a, b}, y);
  add_op(Phase::kBackward, {y}, g);
  add_op(Phase::kBackward, {g, a}, db);
  add_op(Phase::kBackward, {g, b}, da);
  add_op(Phase::kBackward, {da, db}, end);
  parts.results = {end};
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  CHECK(KeepAllPeak(graph) == Bytes(20 + 1 + 100 + 100));
  const RegionRuns runs(graph, {});
  CHECK(SimulationOf(runs, {}).peak == Bytes(10 + 20 + 1 + 100 + 100));
}

TEST_CASE("region runs: those of torch.utils.checkpoint are as lib/problem/schedule lowers them") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomDag(rng, 12, 30, 20, 5);
    const Expansion step = ExpandTensorGraph(graph);
    const auto first = static_cast<int32_t>(rng.Between(0, 10));
    const auto count = static_cast<int32_t>(rng.Between(1, 4));
    IdVector<NodeId, int32_t> region_of(graph.nodes().size(), -1);
    std::vector<int32_t> nodes;
    for (int32_t i = first; i < std::min(first + count, 12); ++i) {
      region_of[NodeId(i)] = 0;
      nodes.push_back(i);
    }
    const RegionRuns runs(step.graph, {RegionOf(step, nodes, Rerun::kUpToLastSaved)});
    CHECK(NamesOf(step, runs.RunsOf({{0}})) ==
          NamesOf(step, RunsOf(step, LowerCheckpoints(graph, region_of))));
  }
}

}  // namespace ckplan
