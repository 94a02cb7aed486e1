#include "lib/planning/plan/check_constraints.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/constraints.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// Short texts of few letters, so that many of them match each other.
std::string DrawnText(Rng& rng, std::string_view letters) {
  std::string text;
  for (int64_t i = rng.Between(1, 4); i > 0; --i) {
    text += letters[static_cast<size_t>(rng.Between(0, std::ssize(letters) - 1))];
  }
  return text;
}

NamePatterns DrawnPatterns(Rng& rng) {
  NamePatterns patterns;
  for (int64_t i = rng.Between(1, 3); i > 0; --i) {
    const char* const sign = rng.Chance(30) ? "!" : "";
    const char* const prefix = rng.Chance(30) ? "op:" : "";
    patterns.push_back(sign + (prefix + DrawnText(rng, "ab*?")));
  }
  return patterns;
}

// Nodes without inputs, with random names and types.
TensorGraph DrawnNames(Rng& rng) {
  TensorGraphParts parts;
  for (int i = 0; i < 6; ++i) {
    Tensor tensor;
    tensor.file_id = i;
    tensor.name = DrawnText(rng, "ab");
    tensor.kind = TensorKind::kActivation;
    tensor.requires_grad = true;
    Node node;
    node.file_id = i;
    node.name = DrawnText(rng, "ab");
    node.op = DrawnText(rng, "ab");
    parts.outputs.push_back(parts.tensors.push_back(std::move(tensor)));
    node.outputs = {parts.outputs.back()};
    parts.nodes.push_back(std::move(node));
  }
  return TensorGraph::Create(std::move(parts)).value();
}

// Each node forward, the loss, each node backward, and all nodes forward once more in between.
Schedule TwiceEach(const TensorGraph& graph) {
  Schedule schedule;
  for (const NodeId id : graph.nodes().ids()) schedule.steps.push_back(Step::Forward(id));
  schedule.steps.push_back(Step::Loss());
  for (const NodeId id : graph.nodes().ids()) schedule.steps.push_back(Step::Forward(id));
  for (const NodeId id : graph.nodes().ids()) schedule.steps.push_back(Step::Backward(id));
  return schedule;
}

// Forward: a and a view of it. Backward: d, which reads the view, and e, which reads a.
JointGraph GraphWithView() {
  JointGraphParts parts;
  const auto add = [&](std::string name, std::vector<ValueId> reads, ValueId base, Phase phase) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.name = name;
    value.bytes = Bytes(4);
    value.alias_of = base;
    Operation op;
    op.file_id = value.file_id;
    op.name = std::move(name);
    op.phase = phase;
    op.reads = std::move(reads);
    op.writes = {parts.values.push_back(std::move(value))};
    parts.ops.push_back(std::move(op));
    return ValueId(parts.values.size() - 1);
  };
  const ValueId a = add("a", {}, ValueId(), Phase::kForward);
  const ValueId view = add("view", {a}, a, Phase::kForward);
  parts.results = {add("d", {view}, ValueId(), Phase::kBackward),
                   add("e", {a}, ValueId(), Phase::kBackward)};
  return JointGraph::Create(std::move(parts)).value();
}

size_t FaultsOf(const JointGraph& graph, const PlanRequest& request, std::vector<int32_t> ops) {
  Schedule schedule;
  for (const int32_t op : ops) schedule.steps.push_back(Step::Run(OpId(op)));
  return BrokenConstraints(graph, request, schedule).size();
}

TEST_CASE("check constraints: patterns match what they match in the planner") {
  int chosen = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = DrawnNames(rng);
    PlanRequest request;
    NamePatterns& patterns = seed % 2 == 0 ? request.keep : request.never_rerun;
    patterns = DrawnPatterns(rng);
    CAPTURE(patterns.front());
    const std::vector<std::string> faults = BrokenConstraints(graph, request, TwiceEach(graph));
    const Result<Constraints> constraints = ConstraintsOf(graph, request);
    const bool fits_nothing =
        std::any_of(faults.begin(), faults.end(), [](const std::string& fault) {
          return fault.find("nothing is called") != std::string::npos;
        });
    CHECK(constraints.ok() == !fits_nothing);
    if (!constraints.ok()) continue;
    const auto once =
        std::count(constraints->runs_once.begin(), constraints->runs_once.end(), true);
    CHECK(std::ssize(faults) == once);
    chosen += once > 0 ? 1 : 0;
  }
  CHECK(chosen > 2000);
}

TEST_CASE("check constraints: without constraints there are no faults") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  CHECK(BrokenConstraints(graph, PlanRequest(), TwiceEach(graph)).empty());
}

TEST_CASE("check constraints: aliases of a recomputed value of a joint graph are recomputed") {
  const JointGraph graph = GraphWithView();
  PlanRequest request;
  request.recompute = {"a"};
  CHECK(FaultsOf(graph, request, {0, 1, 2, 3}) == 2);  // Both read the old version.
  // d reads the old version, through the view.
  CHECK(FaultsOf(graph, request, {0, 1, 0, 2, 3}) == 1);
  CHECK(FaultsOf(graph, request, {0, 1, 0, 1, 2, 3}) == 0);
  CHECK(FaultsOf(graph, request, {0, 0, 1, 2, 3}) == 2);  // The second run is too early.
  request.recompute = {"view"};
  CHECK(FaultsOf(graph, request, {0, 1, 2, 3}) == 1);
  CHECK(FaultsOf(graph, request, {0, 1, 1, 2, 3}) == 0);
  request.recompute = {};
  request.never_rerun = {"view", "d"};
  CHECK(FaultsOf(graph, request, {0, 1, 0, 1, 2, 3}) == 1);
  CHECK(FaultsOf(graph, request, {0, 1, 2, 0, 3}) == 0);
}

}  // namespace
}  // namespace ckplan
