#include "lib/files/emit/json_graph.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/base/rng.h"
#include "lib/testing/damaged_text.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

std::string GraphFaults(const std::string& text) { return FaultsOf(ReadGraphJson(text, "g.json")); }

// x ──▶ conv ──▶ c, mean ──▶ relu ──▶ r
const std::string kFull = R"({
  "schema_version": "1.0", "name": "small", "parameter_bytes": 36, "parameter_gradient_bytes": 32,
  "tensors": [
    {"id": 7, "name": "x", "bytes": 12, "kind": "input"},
    {"id": 9223372036854775807, "name": "c", "bytes": 16, "kind": "activation"},
    {"id": 3, "name": "mean", "bytes": 2, "kind": "statistic", "requires_grad": false},
    {"id": 5, "bytes": 16, "kind": "activation", "color": "blue"}
  ],
  "nodes": [
    {"id": 20, "name": "relu", "op": "Relu", "inputs": [9223372036854775807], "outputs": [5],
     "backward_reads": [5], "forward_cost": 2, "backward_cost": 3, "in_place": [[5, 9223372036854775807]],
     "gradient_passthrough": [9223372036854775807], "random": true},
    {"id": 10, "inputs": [7], "outputs": [9223372036854775807, 3], "backward_reads": [7, 3],
     "forward_cost": 40, "forward_workspace_bytes": 100, "backward_workspace_bytes": 200}
  ],
  "outputs": [5],
  "later_versions_add": {"fields": [1.5]}
})";

const std::string kMinimal = R"({"name": "papers",
  "nodes": [{"id": 30, "name": "a", "op": "Conv", "bytes": 4, "time": 10},
            {"id": 10, "bytes": 2, "time": 1, "backward_time": 6, "backward_reads": [30]},
            {"id": 20, "name": "c", "bytes": 1, "time": 0}],
  "edges": [[30, 10], [30, 20], [10, 20]]})";

}  // namespace

TEST_CASE(
    "graph.json: read(write(graph)) is the graph, and writing it again gives the same bytes") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const std::string text = WriteGraphJson(graph);
    const Result<TensorGraph> again = ReadGraphJson(text, "g.json");
    REQUIRE(again.ok());
    CHECK(*again == graph);
    CHECK(WriteGraphJson(*again) == text);
  }
}

TEST_CASE("graph.json: the written form, to the byte") {
  CHECK(
      WriteGraphJson(GraphFromText("a:4@1 -> b:2@3")) ==
      R"({
  "schema_version": "1.0",
  "name": "text",
  "parameter_bytes": 0,
  "parameter_gradient_bytes": 0,
  "tensors": [
    {"id": 0, "name": "a", "bytes": 4, "kind": "activation", "requires_grad": true},
    {"id": 1, "name": "b", "bytes": 2, "kind": "activation", "requires_grad": true}
  ],
  "nodes": [
    {"id": 0, "name": "a", "op": "", "inputs": [], "outputs": [0], "backward_reads": [0], )"
      R"("forward_cost": 1, "backward_cost": 1, "forward_workspace_bytes": 0, )"
      R"("backward_workspace_bytes": 0, "in_place": [], "gradient_passthrough": [], "random": false},
    {"id": 1, "name": "b", "op": "", "inputs": [0], "outputs": [1], "backward_reads": [0, 1], )"
      R"("forward_cost": 3, "backward_cost": 3, "forward_workspace_bytes": 0, )"
      R"("backward_workspace_bytes": 0, "in_place": [], "gradient_passthrough": [], "random": false}
  ],
  "outputs": [
    1
  ]
}
)");
}

TEST_CASE("graph.json: the tensors that an optimizer keeps state for") {
  const std::string with =
      Replaced(kFull, "\"name\": \"small\",",
               "\"name\": \"small\", \"optimized_tensors\": [[4, 4, 1], [3, 2, 2], [4, 4, 0x]],");
  const auto tensors = [&](const std::string& last) {
    return Replaced(with, ", [4, 4, 0x]", last);
  };
  const TensorGraph graph = ReadGraphJson(tensors(""), "g.json").value();
  CHECK(graph.optimized().bytes == Bytes(32));
  CHECK(graph.optimized().tensors == std::vector<OptimizedTensors>{{3, 2, 2}, {4, 4, 1}});
  const std::string text = WriteGraphJson(graph);
  CHECK(text.find("\"optimized_tensors\"") != std::string::npos);
  CHECK(ReadGraphJson(text, "g.json").value() == graph);
  CHECK(ReadGraphJson(kFull, "g.json").value().optimized().tensors.empty());
  // 28 of 32 bytes are in use.
  CHECK(ReadGraphJson(tensors(", [1, 4, 1]"), "g.json").ok());
  const struct {
    const char *last, *fault;
  } kRows[] = {
      {", [2, 4, 1]", "/optimized_tensors: these tensors need more than the 32 bytes"},
      {", [4611686018427387904, 4, 4]", "/optimized_tensors: these tensors need more than"},
      {", [1, 4]", "/optimized_tensors/2: must be a triple"},
      {", 7", "/optimized_tensors/2: must be a triple"},
      {", [0, 4, 1]", "/optimized_tensors/2: all three must be at least 1"},
      {", [1, 0, 1]", "/optimized_tensors/2: all three must be at least 1"},
      {", [1, 17, 1]", "and the bytes per element at most 16"},
      {", [1, 4, 0]", "/optimized_tensors/2: all three must be at least 1"},
      {", [1, 4, -1]", "/optimized_tensors/2/2: -1 is out of range"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.last);
    const std::string faults = GraphFaults(tensors(row.last));
    CAPTURE(faults);
    CHECK(faults.find(row.fault) != std::string::npos);
  }
}

TEST_CASE("graph.json: the full form, with its defaults, in any order of nodes") {
  const Result<TensorGraph> graph = ReadGraphJson(kFull, "g.json");
  REQUIRE(graph.ok());
  CHECK(graph->name() == "small");
  CHECK(graph->constants() == ConstantMemory{Bytes(36), Bytes(32), Bytes(12)});
  const Node& conv = graph->node(NodeId(0));
  const Node& relu = graph->node(NodeId(1));
  CHECK(conv.file_id == 10);
  CHECK(conv.name == "n10");
  CHECK(conv.op.empty());
  CHECK(conv.outputs == std::vector<TensorId>{TensorId(1), TensorId(2)});
  CHECK(conv.backward_reads == std::vector<TensorId>{TensorId(0), TensorId(2)});
  CHECK(conv.backward_cost == Cost(40));
  CHECK(conv.forward_workspace == Bytes(100));
  CHECK(conv.backward_workspace == Bytes(200));
  CHECK_FALSE(conv.is_random);
  CHECK(relu.file_id == 20);
  CHECK(relu.backward_cost == Cost(3));
  CHECK(relu.in_place == std::vector<InPlacePair>{{TensorId(3), TensorId(1)}});
  CHECK(relu.gradient_passthrough == std::vector<TensorId>{TensorId(1)});
  CHECK(relu.is_random);
  CHECK(graph->outputs() == std::vector<TensorId>{TensorId(3)});
  CHECK_FALSE(graph->tensor(TensorId(0)).requires_grad);  // The default for inputs.
  CHECK(graph->tensor(TensorId(1)).requires_grad);
  CHECK(graph->tensor(TensorId(2)).kind == TensorKind::kStatistic);
  CHECK(graph->tensor(TensorId(3)).name == "t5");
}

// 30 "a" ──▶ 10 ──▶ 20 "c"
//  └─────────────────▲
TEST_CASE("graph.json: the minimal form means what the papers mean") {
  const Result<TensorGraph> graph = ReadGraphJson(kMinimal, "g.json");
  REQUIRE(graph.ok());
  const TensorId a(0), b(1), c(2);
  CHECK(graph->tensor(a).file_id == 30);
  CHECK(graph->tensor(b).file_id == 10);
  CHECK(graph->tensor(b).bytes == Bytes(2));
  CHECK(graph->tensor(b).requires_grad);
  CHECK(graph->tensor(b).kind == TensorKind::kActivation);
  const Node& node_b = graph->node(NodeId(1));
  const Node& node_c = graph->node(NodeId(2));
  CHECK(node_b.inputs == std::vector<TensorId>{a});
  CHECK(node_b.backward_reads == std::vector<TensorId>{a});
  CHECK(node_b.forward_cost == Cost(1));
  CHECK(node_b.backward_cost == Cost(6));
  CHECK(node_c.inputs == std::vector<TensorId>{a, b});
  CHECK(node_c.backward_reads == std::vector<TensorId>{a, b, c});
  CHECK(graph->outputs() == std::vector<TensorId>{c});
  CHECK(graph->constants() == ConstantMemory{});
}

TEST_CASE("graph.json: every required key is missed by name") {
  for (const std::string key :
       {"id", "bytes", "kind", "inputs", "outputs", "backward_reads", "forward_cost", "nodes"}) {
    CAPTURE(key);
    const std::string faults = GraphFaults(Replaced(kFull, "\"" + key + "\"", "\"other\""));
    CHECK(faults.find("the key \"" + key + "\" is missing") != std::string::npos);
  }
  for (const std::string key : {"id", "bytes", "time", "nodes", "edges"}) {
    CAPTURE(key);
    const std::string faults = GraphFaults(Replaced(kMinimal, "\"" + key + "\"", "\"other\""));
    CHECK(faults.find("the key \"" + key + "\" is missing") != std::string::npos);
  }
}

TEST_CASE("graph.json: faults are reported with their places") {
  const struct {
    std::string from, to, fault;
  } kRows[] = {
      {"\"bytes\": 12", "\"bytes\": 12.0", "g.json: /tensors/0/bytes: is a number that is no"},
      {"\"bytes\": 12", "\"bytes\": \"12\"", "g.json: /tensors/0/bytes: is a string"},
      {"\"bytes\": 12", "\"bytes\": true", "g.json: /tensors/0/bytes: is a boolean"},
      {"\"bytes\": 12", "\"bytes\": -1", "g.json: /tensors/0/bytes: -1 is out of range"},
      {"\"bytes\": 12", "\"bytes\": 9223372036854775807", "overflow the limit"},
      {"\"id\": 7,", "\"id\": 3,", "/tensors/2/id: another tensor has the id 3 too"},
      {"\"id\": 20", "\"id\": 10", "/nodes/1/id: another node has the id 10 too"},
      {"\"id\": 20", "\"id\": -1", "/nodes/0/id: -1 is out of range"},
      {"\"kind\": \"input\"", "\"kind\": \"inputs\"", "/tensors/0/kind: \"inputs\" is unknown"},
      {"\"inputs\": [7]", "\"inputs\": [8]", "/nodes/1/inputs/0: no tensor has the id 8"},
      {"\"inputs\": [7]", "\"inputs\": 7", "/nodes/1/inputs: is an integer, must be an array"},
      {"[[5, 9223372036854775807]]", "[[5]]", "/nodes/0/in_place/0: must be a pair"},
      {"\"outputs\": [5],\n  \"later", "\"outputs\": [5, 5],\n  \"later",
       "/outputs/1: this tensor is"},
      {"\"random\": true", "\"random\": 1", "/nodes/0/random: is an integer"},
      {"\"1.0\"", "\"2.0\"", "/schema_version: unknown version \"2.0\""},
      {"\"1.0\"", "1", "/schema_version: is an integer"},
      {"\"1.0\"", "\"\"", "/schema_version: unknown version \"\""},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.to);
    const std::string faults = GraphFaults(Replaced(kFull, row.from, row.to));
    CAPTURE(faults);
    CHECK(faults.find(row.fault) != std::string::npos);
  }
  CHECK(GraphFaults(Replaced(kMinimal, "[30, 20]", "[20, 30]")).find("on a cycle") !=
        std::string::npos);
  CHECK(GraphFaults(Replaced(kMinimal, "[30, 10]", "[30, 11]")) ==
        "g.json: /edges/0/1: no node has the id 11");
  CHECK(GraphFaults(Replaced(kMinimal, "[30, 10]", "[30]")) ==
        "g.json: /edges/0: must be a pair [from, to]");
  CHECK(GraphFaults("{\"nodes\": [], \"edges\": []}") ==
        "g.json: /nodes: a graph must have at least one node");
  CHECK(GraphFaults("[]").find("g.json: /: is an array, must be an object") == 0);
}

TEST_CASE("graph.json: a file of a later minor version is read") {
  CHECK(ReadGraphJson(Replaced(kFull, "\"1.0\"", "\"1.7\""), "g.json").ok());
}

TEST_CASE("graph.json: cut off anywhere, it is an error and nothing else") {
  for (const std::string& text : {kFull, kMinimal}) {
    for (size_t length = 0; length < text.size(); ++length) {
      CAPTURE(length);
      CHECK_FALSE(ReadGraphJson(text.substr(0, length), "g.json").ok());
    }
  }
}

TEST_CASE("graph.json: random damage is an error or another graph, never a crash") {
  int errors = 0, graphs = 0;
  for (uint64_t seed = 0; seed < Instances(4000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const std::string text = DamageRandomly(rng, rng.Chance(50) ? kFull : kMinimal);
    const Result<TensorGraph> graph = ReadGraphJson(text, "g.json");
    if (!graph.ok()) {
      ++errors;
      CHECK(graph.error().code == ErrorCode::kInvalidInput);
      CHECK(graph.error().message.find("g.json: ") == 0);
    } else {
      ++graphs;
      const Result<TensorGraph> again = ReadGraphJson(WriteGraphJson(*graph), "g.json");
      CHECK(*again == *graph);
    }
  }
  CHECK((errors > Instances(1000) && graphs > Instances(100)));
}

}  // namespace ckplan
