#include "lib/problem/schedule/simulate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/naive_moves.h"
#include "lib/testing/naive_simulation.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {

namespace {

std::vector<NodeId> GraphOrder(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

}  // namespace

TEST_CASE("simulate: a chain of three, worked by hand") {
  // a:4 → b:2 → c:1; the backward of each node reads its inputs and its output.
  //   f(a) 4 | f(b) 6 | f(c) 7 | loss: a b c + gradient of c = 8
  //   b(c): 7 + gradients c, b = 10 | b(b): a, b + gradients b, a = 12 | b(a): a + gradient a = 8
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  const Simulation result = *Simulator(graph).Run(KeepAllSchedule(GraphOrder(graph)));
  CHECK(result.peak == Bytes(12));
  CHECK(result.peak_step == 5);
  CHECK(result.overhead == Cost(0));
}

TEST_CASE("simulate: a recomputed node is charged beyond its first run") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  KeptSet kept{IdVector<NodeId, bool>(3, true)};
  kept.is_kept[NodeId(1)] = false;
  const Schedule schedule = LowerStrategy(graph, kept);
  CHECK(Simulator(graph).Run(schedule)->overhead == Cost(3));
}

TEST_CASE("simulate: it agrees with its naive twin, and the timeline with both") {
  for (uint64_t seed = 1; seed <= Instances(2000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 12));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Schedule schedule = LowerStrategy(graph, RandomKeptSet(rng, graph));
    const auto result = Simulator(graph).Run(schedule);
    REQUIRE(result.ok());
    NaiveSimulation naive(graph, schedule);
    CHECK(result->peak == naive.Peak());
    CHECK(result->overhead == naive.Overhead());

    const Timeline timeline = BuildTimeline(graph, schedule);
    CHECK(timeline.peak == result->peak);
    CHECK(timeline.peak_step == result->peak_step);
    for (const Buffer& buffer : timeline.buffers) CHECK(buffer.begin < buffer.end);
    CHECK(NaiveArenaFaults(graph, schedule, PlaceBuffers(timeline).offsets).empty());
  }
}

TEST_CASE("simulate: it agrees with its naive twin where tensors are freed explicitly") {
  for (uint64_t seed = 1; seed <= Instances(500); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const Schedule schedule = LowerWithoutLiveness(graph, RandomKeptSet(rng, graph));
    const auto result = Simulator(graph).Run(schedule);
    REQUIRE(result.ok());
    NaiveSimulation naive(graph, schedule);
    CHECK(result->peak == naive.Peak());
    CHECK(result->overhead == naive.Overhead());
  }
}

TEST_CASE(
    "arena: buffers that live together never overlap, and the slab is hardly larger than the "
    "peak") {
  int tight = 0;
  int tried = 0;
  for (uint64_t seed = 1; seed <= Instances(500); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 30));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Timeline timeline = BuildTimeline(graph, LowerStrategy(graph, RandomKeptSet(rng, graph)));
    const Arena arena = PlaceBuffers(timeline);
    REQUIRE(arena.offsets.size() == timeline.buffers.size());
    CHECK(arena.bytes >= timeline.peak);
    for (size_t a = 0; a < timeline.buffers.size(); ++a) {
      const Buffer& x = timeline.buffers[a];
      CHECK(arena.offsets[a] >= Bytes(0));
      CHECK(arena.offsets[a] + x.bytes <= arena.bytes);
      for (size_t b = 0; b < a; ++b) {
        const Buffer& y = timeline.buffers[b];
        const bool live_together = x.begin < y.end && y.begin < x.end;
        const bool overlap = arena.offsets[a] < arena.offsets[b] + y.bytes &&
                             arena.offsets[b] < arena.offsets[a] + x.bytes;
        CHECK_FALSE((live_together && overlap));
      }
    }
    ++tried;
    if (arena.bytes == timeline.peak) ++tight;
  }
  CHECK(tight * 10 >= tried * 7);
}

TEST_CASE("simulate: the fault of an invalid training step names the step and the tensor") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  const Schedule good = KeepAllSchedule(GraphOrder(graph));
  struct Row {
    const char* part_of_message;
    void (*damage)(std::vector<Step>*);
  };
  const Row rows[] = {
      {"which is not in memory",
       [](std::vector<Step>* s) {
         *s = KeepAllSchedule({NodeId(1), NodeId(0), NodeId(2)}).steps;  // b before a
       }},
      {"must run but does not", [](std::vector<Step>* s) { s->pop_back(); }},
      {"which adds to a gradient first", [](std::vector<Step>* s) { std::swap((*s)[4], (*s)[5]); }},
      {"must not run twice", [](std::vector<Step>* s) { s->push_back((*s)[4]); }},
      {"must not run twice", [](std::vector<Step>* s) { s->push_back(Step::Loss()); }},
      {"\"a\" must run but does not", [](std::vector<Step>* s) { s->clear(); }},
      {"the loss must run but does not",
       [](std::vector<Step>* s) { s->erase(s->begin() + 3, s->end()); }},
      {"before its node has run forward", [](std::vector<Step>* s) { s->erase(s->begin() + 2); }},
      {"does not have", [](std::vector<Step>* s) { (*s)[0].index = 99; }},
      {"must not free", [](std::vector<Step>* s) { s->push_back(Step::Free(TensorId(0))); }},
      {"comes before the loss", [](std::vector<Step>* s) { std::swap((*s)[3], (*s)[4]); }},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.part_of_message));
    Schedule bad = good;
    row.damage(&bad.steps);
    const auto result = Simulator(graph).Run(bad);
    REQUIRE(!result.ok());
    CHECK(result.error().message.find(row.part_of_message) != std::string::npos);
  }
}

TEST_CASE("simulate: a node with two outputs takes over the memory of the first input that dies") {
  // c reads a and b and makes d and e, all of 4 bytes: d may be written over a, and e over b.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> c:4; b:4 -> c"));
  Tensor second = parts.tensors[TensorId(2)];
  second.file_id = static_cast<int64_t>(parts.tensors.size());
  second.name = "e";
  const TensorId e = parts.tensors.push_back(second);
  Node& node = parts.nodes[NodeId(2)];
  REQUIRE(node.name == "c");
  const TensorId c = node.outputs[0];
  node.outputs.push_back(e);
  for (Node& any : parts.nodes) any.backward_reads.clear();  // So a and b die at c.
  for (const TensorId input : node.inputs) {
    node.in_place.push_back({node.in_place.empty() ? c : e, input});
  }
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = KeepAllInOwnOrder(graph);
  const Simulation simulation = *Simulator(graph).Run(schedule);
  CHECK(simulation.peak == NaiveSimulation(graph, schedule).Peak());
  const Timeline timeline = BuildTimeline(graph, schedule);
  CHECK(timeline.peak == simulation.peak);
  size_t forward_buffers = 0;
  for (const Buffer& buffer : timeline.buffers) {
    forward_buffers += buffer.kind == BufferKind::kTensor ? 1 : 0;
  }
  CHECK(forward_buffers == 3);  // For four tensors.
}

TEST_CASE("simulate: an explicit free releases at its step and nowhere else") {
  // The chain above, but a is freed only at the very end, after the gradients.
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  Schedule schedule = KeepAllSchedule(GraphOrder(graph));
  schedule.frees = FreePolicy::kExplicit;
  for (const int32_t t : {0, 1, 2}) schedule.steps.push_back(Step::Free(TensorId(t)));
  const Simulation result = *Simulator(graph).Run(schedule);
  CHECK(result.peak == Bytes(7 + 6));  // All tensors, and the gradients of b and a.
  CHECK(BuildTimeline(graph, schedule).peak == result.peak);

  Schedule leak = schedule;
  leak.steps.pop_back();
  CHECK(Simulator(graph).Run(leak).error().message.find("never freed") != std::string::npos);
  Schedule twice = schedule;
  twice.steps.push_back(Step::Free(TensorId(0)));
  CHECK_FALSE(Simulator(graph).Run(twice).ok());
}

TEST_CASE("lower: a node that no backward needs is never recomputed") {
  // The backward of Add-like nodes reads nothing, so dropping them costs nothing.
  TensorGraphParts parts = PartsOf(GraphFromText("a:4@1 -> b:2@3 -> c:1@5"));
  for (Node& node : parts.nodes) node.backward_reads.clear();
  const TensorGraph graph = *TensorGraph::Create(std::move(parts));
  const Schedule schedule = LowerStrategy(graph, KeptSet{IdVector<NodeId, bool>(3, false)});
  CHECK(Simulator(graph).Run(schedule)->overhead == Cost(0));
}

TEST_CASE("lower: a sequence keeps boundaries and the last segment, and recomputes the rest once") {
  //   a → b → c → d, cut after b: a is recomputed; b, c and d are not.
  const TensorGraph graph = GraphFromText("a:1@1 -> b:1@2 -> c:1@4 -> d:1@8");
  LowerSetSequence sequence{IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 0, 1, 1}), 2};
  CHECK(Simulator(graph).Run(LowerStrategy(graph, sequence))->overhead == Cost(1));
}

TEST_CASE("lower: a dropped chain of 100,000 nodes needs no deep recursion") {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < 100'000; ++i) {
    vertices.push_back({std::to_string(i), Bytes(1), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  const TensorGraph graph = GraphFromVertices("long", vertices, edges);
  const KeptSet nothing{IdVector<NodeId, bool>(graph.nodes().size(), false)};
  CHECK(Simulator(graph).Run(LowerStrategy(graph, nothing))->overhead == Cost(100'000));
}

namespace {

ValueId AddValue(JointGraphParts* parts, const std::string& name, int64_t bytes,
                 ValueKind kind = ValueKind::kValue) {
  Value value;
  value.file_id = static_cast<int64_t>(parts->values.size());
  value.name = name;
  value.bytes = Bytes(bytes);
  value.kind = kind;
  return parts->values.push_back(std::move(value));
}

OpId AddOp(JointGraphParts* parts, const std::string& name, std::vector<ValueId> reads,
           std::vector<ValueId> writes, int64_t cost) {
  Operation op;
  op.file_id = static_cast<int64_t>(parts->ops.size());
  op.name = name;
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  op.cost = Cost(cost);
  return parts->ops.push_back(std::move(op));
}

// a → b → c, then grad_c reads c and b, grad_b reads grad_c and a; dw is a parameter gradient.
JointGraphParts WorkedChain() {
  JointGraphParts parts;
  parts.name = "chain";
  const ValueId x = AddValue(&parts, "x", 100, ValueKind::kConstant);
  const ValueId a = AddValue(&parts, "a", 4);
  const ValueId b = AddValue(&parts, "b", 2);
  const ValueId c = AddValue(&parts, "c", 1);
  const ValueId grad_c = AddValue(&parts, "grad_c", 2);
  const ValueId dw = AddValue(&parts, "dw", 50, ValueKind::kParameterGradient);
  AddOp(&parts, "f_a", {x}, {a}, 1);
  AddOp(&parts, "f_b", {a}, {b}, 3);
  AddOp(&parts, "f_c", {b}, {c}, 5);
  AddOp(&parts, "b_c", {c, b}, {grad_c}, 7);
  AddOp(&parts, "b_b", {grad_c, a}, {dw}, 9);
  return parts;
}

std::vector<OpId> RunsInOrder(std::initializer_list<int> ops) {
  std::vector<OpId> runs;
  for (const int op : ops) runs.emplace_back(static_cast<int32_t>(op));
  return runs;
}

}  // namespace

TEST_CASE("runs: a chain, worked by hand") {
  // f_a 4 | f_b 6 | f_c 7 | b_c a b c grad_c 9 | b_b a grad_c 6; x and dw are not counted.
  const JointGraph graph = JointGraph::Create(WorkedChain()).value();
  const Simulation own = *Simulator(graph).Run(OwnOrder(graph));
  CHECK(own.peak == Bytes(9));
  CHECK(own.peak_step == 3);
  CHECK(own.cost == Cost(25));
  // a runs again for b_b and is dropped after f_b: b_c 2 + 1 + 2, b_b 4 + 2.
  const Simulation again = *Simulator(graph).Run(RunsInOrder({0, 1, 2, 3, 0, 4}));
  CHECK(again.peak == Bytes(6));
  CHECK(again.peak_step == 1);
  CHECK(again.cost == Cost(26));
}

TEST_CASE("runs: a write takes over the memory of a read that dies, and of no other") {
  JointGraphParts parts = WorkedChain();
  // f_b may write b over a, which now has the same size.
  parts.values[ValueId(2)].bytes = Bytes(4);
  parts.ops[OpId(1)].in_place = {{ValueId(2), ValueId(1)}};
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  Simulator simulator(graph);
  // b_b reads a, so a stays in memory.
  CHECK(simulator.Run(OwnOrder(graph))->peak == Bytes(4 + 4 + 1 + 2));
  // a runs again before b_b, so f_b is the last to read its first version. b_c holds b, c and
  // grad_c.
  CHECK(simulator.Run(RunsInOrder({0, 1, 2, 3, 0, 4}))->peak == Bytes(4 + 1 + 2));
}

TEST_CASE("runs: an alias holds the memory that it is in") {
  JointGraphParts parts = WorkedChain();
  // c is a view of b: it has no memory of its own, and that of b lives as long as c.
  parts.values[ValueId(3)].alias_of = ValueId(2);
  parts.ops[OpId(3)].reads = {ValueId(3)};
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const Simulation own = *Simulator(graph).Run(OwnOrder(graph));
  CHECK(own.peak == Bytes(4 + 2 + 2));
  CHECK(own.peak_step == 3);
}

TEST_CASE("runs: the timeline agrees with the simulator") {
  const JointGraph graph = JointGraph::Create(WorkedChain()).value();
  for (const std::vector<OpId>& runs : {OwnOrder(graph), RunsInOrder({0, 1, 2, 3, 0, 4})}) {
    const Simulation simulation = *Simulator(graph).Run(runs);
    const Timeline timeline = BuildTimeline(graph, runs);
    CHECK(timeline.peak == simulation.peak);
    CHECK(timeline.peak_step == simulation.peak_step);
    CHECK(timeline.step_bytes.size() == runs.size());
  }
}

TEST_CASE("runs: the fault of an invalid plan names the step and the value") {
  JointGraphParts parts = WorkedChain();
  parts.ops[OpId(2)].may_repeat = false;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  Simulator simulator(graph);
  const auto fault = [&](std::initializer_list<int> runs) {
    return simulator.Run(RunsInOrder(runs)).error().message;
  };
  CHECK(fault({0, 2}) ==
        "schedule: step 1 (run of \"f_c\") reads value \"b\", which is not in memory");
  CHECK(fault({0, 1, 2, 2, 3, 4}) == "schedule: step 3 (run of \"f_c\") must not run twice");
  CHECK(fault({0, 1, 2, 3}) == "schedule: \"b_b\" must run but does not");
  CHECK(fault({0, 9}) == "schedule: step 1 (run) runs a node that the graph does not have");
}

TEST_CASE("joint graph: all faults of the parts are reported at once") {
  JointGraphParts parts = WorkedChain();
  parts.values[ValueId(1)].bytes = Bytes(-1);
  parts.ops[OpId(0)].reads = {ValueId(3)};                   // c, which is made later.
  parts.ops[OpId(1)].in_place = {{ValueId(2), ValueId(0)}};  // f_b does not read x.
  parts.values[ValueId(4)].alias_of = ValueId(1);            // b_c does not read a.
  const Error error = JointGraph::Create(std::move(parts)).error();
  CHECK(error.code == ErrorCode::kInvalidInput);
  CHECK(error.message == "graph \"chain\": value \"a\" has -1 bytes");
  CHECK(error.notes.size() == 3);
}

// Quadratic work over the pairs would take minutes.
TEST_CASE("simulate runs: an operation with 200,000 in-place pairs") {
  constexpr int kValues = 200'000;
  JointGraphParts parts;
  std::vector<ValueId> made;
  std::vector<ValueId> changed;
  for (int i = 0; i < kValues; ++i) made.push_back(AddValue(&parts, "made", 1));
  for (int i = 0; i < kValues; ++i) changed.push_back(AddValue(&parts, "changed", 1));
  AddOp(&parts, "make", {}, made, 1);
  Operation& change = parts.ops[AddOp(&parts, "change", made, changed, 1)];
  for (size_t i = 0; i < kValues; ++i) change.in_place.push_back({changed[i], made[i]});
  parts.results = changed;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  CHECK(Simulator(graph).Run(OwnOrder(graph))->peak == Bytes(kValues));
}

namespace {

JointGraph RandomGraphWithGradients(Rng& rng) {
  RandomJointOptions options;
  options.ops = static_cast<int>(rng.Between(1, 14));
  options.parameter_gradient = 30;
  return RandomJointGraph(rng, options);
}

}  // namespace

TEST_CASE("arriving gradients: they are values that are results, and count as such") {
  int more = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomGraphWithGradients(rng);
    const JointGraph arriving = WithArrivingGradients(graph);
    JointGraphParts parts = PartsOf(graph);
    for (const ValueId id : parts.values.ids()) {
      Value& value = parts.values[id];
      if (value.kind != ValueKind::kParameterGradient || value.producer.is_none()) continue;
      value.kind = ValueKind::kValue;
      if (!value.is_result) parts.results.push_back(id);
    }
    const JointGraph as_values = JointGraph::Create(std::move(parts)).value();
    CHECK(arriving.results() == as_values.results());
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const Simulation expected = *Simulator(as_values).Run(runs);
    const Simulation actual = *Simulator(arriving).Run(runs);
    CHECK(actual.peak == expected.peak);
    CHECK(actual.peak_step == expected.peak_step);
    CHECK(BuildTimeline(arriving, runs).peak == expected.peak);
    more += actual.peak > Simulator(graph).Run(runs)->peak;
    CHECK(WithArrivingGradients(arriving) == arriving);
  }
  CHECK(more > 300);
}

TEST_CASE("naive runs: the simulator agrees with the definition, version by version") {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    JointGraph graph = RandomGraphWithGradients(rng);
    if (rng.Chance(30)) graph = WithArrivingGradients(graph);
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const Simulation simulation = *Simulator(graph).Run(runs);
    NaiveRuns naive(graph, runs);
    CHECK(naive.Peak() == simulation.peak);
    CHECK(naive.TotalCost() == simulation.cost);
  }
}

}  // namespace ckplan
