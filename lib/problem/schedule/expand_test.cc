#include "lib/problem/schedule/expand.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

// Each operation once.
std::vector<OpId> RandomOrder(Rng& rng, const JointGraph& graph) {
  std::vector<OpId> runs;
  IdVector<OpId, bool> has_run(graph.ops().size());
  while (runs.size() < graph.ops().size()) {
    std::vector<OpId> ready;
    for (const OpId id : graph.ops().ids()) {
      const auto is_made = [&](ValueId read) {
        const OpId producer = graph.value(read).producer;
        return producer.is_none() || has_run[producer];
      };
      const std::vector<ValueId>& reads = graph.op(id).reads;
      if (!has_run[id] && std::all_of(reads.begin(), reads.end(), is_made)) ready.push_back(id);
    }
    runs.push_back(
        ready[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(ready.size()) - 1))]);
    has_run[runs.back()] = true;
  }
  return runs;
}

}  // namespace

TEST_CASE("expand: every schedule needs as much memory at its peak as its runs") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomModelGraph(rng);
    const Expansion expansion = ExpandTensorGraph(graph);
    const Schedule schedule = LowerStrategy(graph, RandomKeptSet(rng, graph));
    const Simulation expected = *Simulator(graph).Run(schedule);
    const std::vector<OpId> runs = RunsOf(expansion, schedule);
    const auto actual = Simulator(expansion.graph).Run(runs);
    REQUIRE(actual.ok());
    CHECK(actual->peak == expected.peak);
    CHECK(actual->peak_step == expected.peak_step);
    CHECK(actual->cost - expansion.graph.cost() == expected.overhead);
    CHECK(ScheduleOf(expansion, runs) == schedule);
    CHECK(KeepAllPeak(expansion.graph) == KeepAllPeak(graph));
  }
}

TEST_CASE("expand: for any order, schedules are plans of the graph and plans are schedules") {
  int as_much = 0;
  constexpr int kSeeds = 2000;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomModelGraph(rng);
    const Expansion expansion = ExpandForAnyOrder(graph);
    const Schedule schedule =
        RandomSchedule::Make(rng, graph, static_cast<int>(rng.Between(0, 20)));
    const Simulation expected = *Simulator(graph).Run(schedule);
    const std::vector<OpId> runs = RunsOf(expansion, schedule);
    CHECK(ScheduleOf(expansion, runs) == schedule);
    const auto actual = Simulator(expansion.graph).Run(runs);
    REQUIRE(actual.ok());
    CHECK(actual->peak <= expected.peak);
    CHECK(actual->cost - expansion.graph.cost() == expected.overhead);
    if (actual->peak == expected.peak) ++as_much;

    const std::vector<OpId> once = RandomOrder(rng, expansion.graph);
    const auto simulation = Simulator(graph).Run(ScheduleOf(expansion, once));
    REQUIRE(simulation.ok());
    CHECK(Simulator(expansion.graph).Run(once)->peak <= simulation->peak);
  }
  CHECK(as_much > kSeeds * 98 / 100);
}

TEST_CASE("expand: for any order, of all orders those are plans that are training steps") {
  int plans = 0;
  int mirrored_otherwise = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 3;
    options.shared_parameter = 20;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Expansion expansion = ExpandForAnyOrder(graph);
    Simulator runs(expansion.graph);
    Simulator schedules(graph);
    std::vector<OpId> order = OwnOrder(expansion.graph);
    do {
      const Schedule schedule = ScheduleOf(expansion, order);
      const bool is_plan = runs.Run(order).ok();
      const bool is_step = schedules.Run(schedule).ok();
      if (is_plan != is_step) {
        // Sums use a different order of additions.
        CHECK(is_step);
        CHECK(IsMirrored(schedule));
        ++mirrored_otherwise;
      }
      plans += is_plan ? 1 : 0;
    } while (std::next_permutation(order.begin(), order.end()));
  }
  CHECK(plans > 300);
  CHECK(mirrored_otherwise > 0);
}

TEST_CASE("expand: gradients of parameters arrive with the backward of their node") {
  //   a:4 → b:2 → c:3; of 100 bytes of parameter gradients, b computes 10, a computes 7, and
  //   the rest belongs to no node.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:2 -> c:3"));
  parts.parameter_gradients = Bytes(100);
  parts.nodes[NodeId(0)].parameter_gradients = Bytes(7);
  parts.nodes[NodeId(1)].parameter_gradients = Bytes(10);
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const JointGraph constant = ExpandForAnyOrder(graph).graph;
  const JointGraph arriving = ExpandWithArrivingGradients(graph).graph;
  CHECK(OwnOrder(arriving) == OwnOrder(constant));
  Bytes apart;
  Bytes in_the_peak;
  for (const Value& value : arriving.values()) {
    if (value.kind == ValueKind::kParameterGradient) apart += value.bytes;
    if (value.kind == ValueKind::kArrivingGradient) in_the_peak += value.bytes;
  }
  CHECK(apart == Bytes(83));
  CHECK(in_the_peak == Bytes(17));
  CHECK(KeepAllPeak(constant) == KeepAllPeak(graph));
  // The backward of a: a, its gradient, and what b and a make.
  CHECK(KeepAllPeak(arriving) == Bytes(4 + 4 + 10 + 7));
  CHECK(ExpandWithArrivingGradients(GraphFromText("a:4 -> b:2")).graph.results().size() ==
        2 + ExpandForAnyOrder(GraphFromText("a:4 -> b:2")).graph.results().size());
}

TEST_CASE("expand: for any order, a sum is made in place where nobody else holds its memory") {
  //   a → b → d, a → d, and d passes its gradient to a and b: b adds to a's gradient, which is b's
  //   own as well. a → c → e, a → e: e passes nothing, so c adds to a gradient that a alone holds.
  TensorGraphParts parts =
      PartsOf(GraphFromText("a:4 -> b:4 -> d:4; a -> d; x:4 -> c:4 -> e:4; x -> e"));
  for (Node& node : parts.nodes) {
    if (node.name == "d") node.gradient_passthrough = node.inputs;
  }
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const Expansion expansion = ExpandForAnyOrder(graph);
  int pairs = 0;
  for (const Operation& op : expansion.graph.ops()) {
    if (op.phase == Phase::kBackward) pairs += static_cast<int>(op.in_place.size());
  }
  CHECK(pairs == 2);
  CHECK(KeepAllPeak(expansion.graph) == KeepAllPeak(graph));
}

TEST_CASE("expand: forward in another order than the graph's") {
  //   a → b → d, a → c → d with c before b.
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> d:3; a -> c:5 -> d");
  const std::vector<NodeId> order = {NodeId(0), NodeId(2), NodeId(1), NodeId(3)};
  const Expansion expansion = ExpandTensorGraph(graph, order);
  const Schedule schedule = KeepAllSchedule(order);
  CHECK(RunsOf(expansion, schedule) == OwnOrder(expansion.graph));
  CHECK(ScheduleOf(expansion, OwnOrder(expansion.graph)) == schedule);
  CHECK(KeepAllPeak(expansion.graph) == Simulator(graph).Run(schedule)->peak);
}

TEST_CASE("expand: every graph that can be has a step that can be") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    TensorGraph largest = RandomModelGraph(rng);
    // Doubles the figures until the totals overflow.
    for (bool is_larger = true; is_larger;) {
      TensorGraphParts parts = PartsOf(largest);
      for (Tensor& tensor : parts.tensors) tensor.bytes += tensor.bytes + Bytes(1);
      Result<TensorGraph> larger = TensorGraph::Create(std::move(parts));
      is_larger = larger.ok();
      if (is_larger) largest = *std::move(larger);
    }
    CHECK(KeepAllPeak(ExpandTensorGraph(largest).graph) > Bytes(0));
    CHECK(KeepAllPeak(ExpandForAnyOrder(largest).graph) > Bytes(0));
    CHECK(KeepAllPeak(ExpandWithArrivingGradients(largest).graph) > Bytes(0));
  }
}

TEST_CASE("expand: for any order, what cannot be read yet is put off") {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomModelGraph(rng);
    const Expansion expansion = ExpandForAnyOrder(graph);
    // A random forward order, and its reverse.
    std::vector<NodeId> order;
    for (const OpId op : RandomOrder(rng, expansion.graph)) {
      const Step& step = expansion.step_of[static_cast<size_t>(op.index())];
      if (step.kind == StepKind::kForward) order.push_back(step.node());
    }
    const std::vector<OpId> mirrored = RunsOf(expansion, KeepAllSchedule(order));
    const std::vector<OpId> runs = DelayUntilReadable(expansion.graph, mirrored);
    CHECK(Simulator(expansion.graph).Run(runs).ok());
    CHECK(std::is_permutation(runs.begin(), runs.end(), mirrored.begin(), mirrored.end()));
    CHECK((runs == mirrored) == Simulator(expansion.graph).Run(mirrored).ok());
    changed += runs == mirrored ? 0 : 1;
  }
  CHECK(changed > 100);
}

TEST_CASE("expand: a gradient that others pass on is a value of its own once something is added") {
  //   a → b → d, a → d: d passes its gradient to a and to b, and b adds one of its own to a's.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:4 -> d:4; a -> d"));
  parts.nodes[NodeId(2)].gradient_passthrough = parts.nodes[NodeId(2)].inputs;
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const Expansion expansion = ExpandTensorGraph(graph);
  const Operation& b_backward = expansion.graph.op(OpId(5));
  REQUIRE(b_backward.name == "b backward");
  const Value& sum = expansion.graph.value(b_backward.writes.front());
  CHECK(sum.name == "gradient of a");
  // The shared buffer is b's gradient as well, which is read to the end of this step.
  CHECK(sum.alias_of.is_none());
  CHECK(b_backward.workspace == Bytes(4));  // The contribution, before it is added.
}

TEST_CASE("expand: forward nodes that nothing needs run all the same") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:2; a -> dead:3"));
  parts.nodes[NodeId(2)].backward_reads.clear();
  parts.outputs = {parts.nodes[NodeId(1)].outputs.front()};
  const Expansion expansion = ExpandTensorGraph(*TensorGraph::Create(std::move(parts)));
  std::vector<OpId> runs = OwnOrder(expansion.graph);
  CHECK(Simulator(expansion.graph).Run(runs).ok());
  runs.erase(runs.begin() + 2);
  CHECK_FALSE(Simulator(expansion.graph).Run(runs).ok());
}

// Quadratic work over the inputs would take minutes.
TEST_CASE("expand: a node that adds up 100,000 inputs") {
  constexpr int kInputs = 100'000;
  TensorGraphParts parts;
  const auto add_tensor = [&](TensorKind kind) {
    Tensor tensor;
    tensor.file_id = static_cast<int64_t>(parts.tensors.size());
    tensor.bytes = Bytes(1);
    tensor.kind = kind;
    return parts.tensors.push_back(std::move(tensor));
  };
  const auto add_node = [&](std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    Node node;
    node.file_id = static_cast<int64_t>(parts.nodes.size());
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.gradient_passthrough = node.inputs;
    parts.nodes.push_back(std::move(node));
  };
  const TensorId input = add_tensor(TensorKind::kInput);
  std::vector<TensorId> parts_of_sum;
  for (int i = 0; i < kInputs; ++i) parts_of_sum.push_back(add_tensor(TensorKind::kActivation));
  add_node({input}, parts_of_sum);
  parts.outputs = {add_tensor(TensorKind::kActivation)};
  add_node(parts_of_sum, parts.outputs);
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  for (const Expansion& expansion : {ExpandTensorGraph(graph), ExpandForAnyOrder(graph)}) {
    const OpId backward(3);  // The backward of the sum, whose gradient all inputs share.
    CHECK(expansion.graph.op(backward).writes.size() == kInputs + 1);
    CHECK(expansion.graph.op(backward).workspace == Bytes(0));
  }
}

}  // namespace ckplan
