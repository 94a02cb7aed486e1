#include "cli/ckbench/paper_graph.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "cli/ckbench/synthetic_graph.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// Returns the graph of the text. A node's operator is its name up to a digit: "Conv1" is a Conv.
TensorGraph GraphOfOps(std::string_view text) {
  TensorGraphParts parts = PartsOf(GraphFromText(text));
  for (Node& node : parts.nodes) {
    node.op = node.name.substr(0, node.name.find_first_of("0123456789"));
  }
  return TensorGraph::Create(std::move(parts)).value();
}

size_t CountOf(const TensorGraph& graph, std::string_view op) {
  size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE(
    "paper graph: readers of a removed node read its input, also across several removed nodes") {
  const TensorGraph graph =
      GraphOfOps("Conv1:8 -> Dropout1:8 -> Dropout2:8 -> Gemm1:2; Dropout1 -> Gemm1");
  const TensorGraph bare =
      WithoutNodes(graph, [](const Node& node) { return node.op == "Dropout"; });
  REQUIRE(bare.nodes().size() == 2);
  CHECK(bare.tensors().size() == 2);
  const Node& last = bare.node(NodeId(1));
  CHECK(last.inputs == std::vector<TensorId>{TensorId(0), TensorId(0)});
  CHECK(last.backward_reads == std::vector<TensorId>{TensorId(0), TensorId(1)});
}

TEST_CASE("paper graph: statistics are removed, and a pooling reads the tensors that cuDNN reads") {
  TensorGraphParts parts = PartsOf(GraphOfOps("Conv1:8 -> MaxPool1:2"));
  Tensor indices;
  indices.file_id = 7;
  indices.kind = TensorKind::kStatistic;
  indices.bytes = Bytes(16);
  const TensorId id = parts.tensors.push_back(indices);
  parts.nodes[NodeId(1)].outputs.push_back(id);
  parts.nodes[NodeId(1)].backward_reads = {id};
  const TensorGraph bare = WithoutStatistics(TensorGraph::Create(std::move(parts)).value());
  CHECK(bare.tensors().size() == 2);
  CHECK(bare.node(NodeId(1)).backward_reads == std::vector<TensorId>{TensorId(0), TensorId(1)});
}

TEST_CASE(
    "paper graph: a concatenation of all earlier results becomes a concatenation of two tensors") {
  const TensorGraph graph = GraphOfOps(
      "a1:1 -> Concat1:3; b1:2 -> Concat1; a1 -> Concat2:6; b1 -> Concat2; c1:3 -> Concat2");
  const TensorGraph chained = WithChainedConcatenations(graph);
  const Node& last = chained.nodes()[NodeId(chained.nodes().size() - 1)];
  REQUIRE(last.name == "Concat2");
  REQUIRE(last.inputs.size() == 2);
  CHECK(chained.tensor(last.inputs[0]).name == "Concat1");
  CHECK(chained.tensor(last.inputs[1]).name == "c1");
}

TEST_CASE("synthetic graphs: a residual network has the convolutions of its depth") {
  for (const int64_t depth : {50, 101, 200, 1001}) {
    CAPTURE(depth);
    const std::vector<int64_t> units = StagesOfDepth(depth);
    const TensorGraph graph = ResidualNetwork(units, 1, 224);
    const int64_t total = units[0] + units[1] + units[2] + units[3];
    CHECK(total == (depth - 2) / 3);
    // There are three convolutions in each unit, a first one, and a shortcut in each stage.
    CHECK(CountOf(graph, "Conv") == static_cast<size_t>(3 * total + 5));
    CHECK(CountOf(graph, "Add") == static_cast<size_t>(total));
  }
}

TEST_CASE("synthetic graphs: an LSTM has all of its steps, each with a softmax on top") {
  const TensorGraph lstm = UnrollLstm(4, 16, 5, 7, 2, 9);
  CHECK(CountOf(lstm, "Softmax") == 9);
  CHECK(CountOf(lstm, "Tanh") == 2 * 4 * 9);
  CHECK(lstm.outputs().size() == 9);
}

// After a step, the states of four layers stay alive: h and c of 2 x 16 floats each.
TEST_CASE("synthetic graphs: chen-frontier cuts an LSTM between steps of time") {
  const TensorGraph lstm = UnrollLstm(4, 16, 5, 7, 2, 9);
  PlanRequest request;
  request.algorithm = "chen-frontier";
  request.setting = KnobSetting{"segments", 3};
  const Plan plan = *MakePlan(lstm, request, {});
  const size_t nodes_in_segment = lstm.nodes().size() / 3;
  Bytes kept;
  for (const NodeId id : lstm.nodes().ids()) {
    const auto segment = plan.decisions[id].segment;
    CHECK(segment == static_cast<int32_t>(static_cast<size_t>(id.index()) / nodes_in_segment));
    const auto& readers = lstm.tensor(lstm.node(id).outputs[0]).consumers;
    const bool crosses = std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      return plan.decisions[reader].segment > segment;
    });
    if (crosses) kept += lstm.tensor(lstm.node(id).outputs[0]).bytes;
  }
  CHECK(kept == Bytes(2 * 8 * (2 * 16 * 4)));
}

}  // namespace ckplan
