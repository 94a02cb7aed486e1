#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
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
JointGraphParts Chain() {
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
  const JointGraph graph = JointGraph::Create(Chain()).value();
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
  JointGraphParts parts = Chain();
  // f_b may write b over a, which now has the same size.
  parts.values[ValueId(2)].bytes = Bytes(4);
  parts.ops[OpId(1)].in_place = {{ValueId(2), ValueId(1)}};
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  Simulator simulator(graph);
  // b_b reads a, so a lives on.
  CHECK(simulator.Run(OwnOrder(graph))->peak == Bytes(4 + 4 + 1 + 2));
  // a runs again before b_b, so f_b is the last to read its first version. b_c holds b, c and
  // grad_c.
  CHECK(simulator.Run(RunsInOrder({0, 1, 2, 3, 0, 4}))->peak == Bytes(4 + 1 + 2));
}

TEST_CASE("runs: an alias holds the memory that it is in") {
  JointGraphParts parts = Chain();
  // c is a view of b: it has no memory of its own, and that of b lives as long as c.
  parts.values[ValueId(3)].alias_of = ValueId(2);
  parts.ops[OpId(3)].reads = {ValueId(3)};
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const Simulation own = *Simulator(graph).Run(OwnOrder(graph));
  CHECK(own.peak == Bytes(4 + 2 + 2));
  CHECK(own.peak_step == 3);
}

TEST_CASE("runs: the timeline agrees with the simulator") {
  const JointGraph graph = JointGraph::Create(Chain()).value();
  for (const std::vector<OpId>& runs : {OwnOrder(graph), RunsInOrder({0, 1, 2, 3, 0, 4})}) {
    const Simulation simulation = *Simulator(graph).Run(runs);
    const Timeline timeline = BuildTimeline(graph, runs);
    CHECK(timeline.peak == simulation.peak);
    CHECK(timeline.peak_step == simulation.peak_step);
    CHECK(timeline.step_bytes.size() == runs.size());
  }
}

TEST_CASE("runs: the fault of an invalid plan names the step and the value") {
  JointGraphParts parts = Chain();
  parts.ops[OpId(2)].may_repeat = false;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  Simulator simulator(graph);
  const auto fault = [&](std::initializer_list<int> runs) {
    return simulator.Run(RunsInOrder(runs)).error().message;
  };
  CHECK(fault({0, 2}) ==
        "schedule: step 1 (run of \"f_c\") reads value \"b\", which is not in memory");
  CHECK(fault({0, 1, 2, 2, 3, 4}) == "schedule: step 3 (run of \"f_c\") must not run twice");
  CHECK(fault({0, 1, 2, 3}) == "schedule: \"b_b\" never runs, but must");
  CHECK(fault({0, 9}) == "schedule: step 1 (run) runs what the graph does not have");
}

TEST_CASE("joint graph: all faults of the parts are reported at once") {
  JointGraphParts parts = Chain();
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

}  // namespace ckplan
