#include "lib/files/emit/json_joint_graph.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "lib/base/rng.h"
#include "lib/testing/damaged_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

std::string JointFaults(const std::string& text) {
  return FaultsOf(ReadJointGraphJson(text, "g.json"));
}

// x, w ──▶ conv ──▶ c ──▶ relu ──▶ r ──▶ view ──▶ s (in the memory of r)
//                                        conv_grad reads s and x ──▶ dw, a parameter gradient
const std::string kFullJoint = R"({
  "schema_version": "1.0", "kind": "joint", "name": "small",
  "values": [
    {"id": 4, "name": "s", "bytes": 16, "kind": "value", "alias_of": 3},
    {"id": 7, "name": "x", "bytes": 12, "kind": "constant"},
    {"id": 8, "bytes": 36, "kind": "constant", "color": "blue"},
    {"id": 9223372036854775807, "name": "c", "bytes": 16, "kind": "value"},
    {"id": 3, "name": "r", "bytes": 16, "kind": "value"},
    {"id": 5, "name": "dw", "bytes": 36, "kind": "parameter_gradient"}
  ],
  "ops": [
    {"id": 20, "reads": [7, 8], "writes": [9223372036854775807], "cost": 40,
     "workspace_bytes": 100, "repeat": "never"},
    {"id": 10, "name": "relu", "op": "Relu", "module": "body.1", "phase": "forward",
     "reads": [9223372036854775807], "writes": [3], "cost": 2, "repeat": "yes",
     "in_place": [[3, 9223372036854775807]]},
    {"id": 11, "name": "view", "reads": [3], "writes": [4], "cost": 0},
    {"id": 0, "name": "conv_grad", "phase": "backward", "reads": [4, 7], "writes": [5], "cost": 80}
  ],
  "results": [4],
  "later_versions_add": {"fields": [1.5]}
})";

const std::string kMinimalJoint = R"({"name": "papers", "keep_order_peak": 7,
  "ops": [{"name": "a", "time": 10, "bytes": 4, "reads": []},
          {"time": 1, "bytes": 2, "reads": [0]},
          {"name": "c", "time": 0, "bytes": 1, "reads": [1, 0]}]})";

}  // namespace

TEST_CASE("joint graph files: read(write(graph)) is the graph, and the same bytes again") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    const std::string text = WriteJointGraphJson(graph);
    const Result<JointGraph> again = ReadJointGraphJson(text, "g.json");
    REQUIRE(again.ok());
    CHECK(*again == graph);
    CHECK(WriteJointGraphJson(*again) == text);
  }
}

TEST_CASE("joint graph files: the written form, to the byte") {
  const Result<JointGraph> graph = ReadJointGraphJson(kFullJoint, "g.json");
  REQUIRE(graph.ok());
  CHECK(WriteJointGraphJson(*graph) ==
        R"({
  "schema_version": "1.0",
  "kind": "joint",
  "name": "small",
  "values": [
    {"id": 4, "name": "s", "bytes": 16, "kind": "value", "alias_of": 3},
    {"id": 7, "name": "x", "bytes": 12, "kind": "constant"},
    {"id": 8, "name": "v8", "bytes": 36, "kind": "constant"},
    {"id": 9223372036854775807, "name": "c", "bytes": 16, "kind": "value"},
    {"id": 3, "name": "r", "bytes": 16, "kind": "value"},
    {"id": 5, "name": "dw", "bytes": 36, "kind": "parameter_gradient"}
  ],
  "ops": [
    {"id": 20, "name": "op20", "op": "", "phase": "forward", "reads": [7, 8], )"
        R"("writes": [9223372036854775807], "cost": 40, )"
        R"("workspace_bytes": 100, "repeat": "never", "in_place": []},
    {"id": 10, "name": "relu", "op": "Relu", "phase": "forward", "reads": [9223372036854775807], )"
        R"("writes": [3], "cost": 2, "workspace_bytes": 0, )"
        R"("repeat": "yes", )"
        R"("in_place": [[3, 9223372036854775807]], )"
        R"("module": "body.1"},
    {"id": 11, "name": "view", "op": "", "phase": "forward", "reads": [3], "writes": [4], )"
        R"("cost": 0, "workspace_bytes": 0, "repeat": "yes", )"
        R"("in_place": []},
    {"id": 0, "name": "conv_grad", "op": "", "phase": "backward", "reads": [4, 7], )"
        R"("writes": [5], "cost": 80, "workspace_bytes": 0, )"
        R"("repeat": "yes", "in_place": []}
  ],
  "results": [
    4
  ]
}
)");
}

TEST_CASE("joint graph files: the full form, with its defaults") {
  const Result<JointGraph> graph = ReadJointGraphJson(kFullJoint, "g.json");
  REQUIRE(graph.ok());
  CHECK(graph->name() == "small");
  const Operation& conv = graph->op(OpId(0));
  const Operation& relu = graph->op(OpId(1));
  CHECK(conv.file_id == 20);
  CHECK(conv.name == "op20");
  CHECK(conv.reads == std::vector<ValueId>{ValueId(1), ValueId(2)});
  CHECK(conv.workspace == Bytes(100));
  CHECK_FALSE(conv.may_repeat);
  CHECK(relu.phase == Phase::kForward);
  CHECK(relu.module == "body.1");
  CHECK(relu.in_place == std::vector<InPlaceWrite>{{ValueId(4), ValueId(3)}});
  CHECK(graph->op(OpId(3)).phase == Phase::kBackward);
  CHECK(graph->value(ValueId(0)).alias_of == ValueId(4));  // Listed before its base.
  CHECK(graph->value(ValueId(0)).is_result);
  CHECK(graph->value(ValueId(2)).name == "v8");
  CHECK(graph->value(ValueId(5)).kind == ValueKind::kParameterGradient);
}

// 0 "a" ──▶ 1 ──▶ 2 "c"
//  └───────────────▲
TEST_CASE("joint graph files: the tensors that an optimizer keeps state for") {
  const auto with = [](const std::string& tensors) {
    return Replaced(kFullJoint, "\"name\": \"small\",",
                    "\"name\": \"small\", \"optimized_tensors\": " + tensors + ",");
  };
  // dw has 36 bytes.
  const JointGraph graph = ReadJointGraphJson(with("[[18, 2, 1]]"), "g.json").value();
  CHECK(OptimizedOf(graph).bytes == Bytes(36));
  CHECK(OptimizedOf(graph).tensors == std::vector<OptimizedTensors>{{18, 2, 1}});
  CHECK(OptimizedOf(WithArrivingGradients(graph)).tensors == OptimizedOf(graph).tensors);
  const std::string text = WriteJointGraphJson(graph);
  CHECK(ReadJointGraphJson(text, "g.json").value() == graph);
  // A gradient may also be a result, and "s" has 16 bytes.
  CHECK(OptimizedOf(ReadJointGraphJson(with("[[26, 2, 1]]"), "g.json").value()).bytes == Bytes(52));
  CHECK(JointFaults(with("[[27, 2, 1]]")) ==
        "g.json: /optimized_tensors: these tensors need more than the 52 bytes of the "
        "graph's gradients");
}

TEST_CASE("joint graph files: a list of trained tensors counts gradients of any kind") {
  const std::string plain = Replaced(kFullJoint, "\"parameter_gradient\"", "\"value\"");
  const std::string results = Replaced(plain, "\"results\": [4]", "\"results\": [4, 5]");
  const JointGraph unknown = ReadJointGraphJson(results, "g.json").value();
  CHECK(OptimizedOf(unknown).is_unknown);
  CHECK(OptimizedOf(unknown).bytes == Bytes(0));
  for (const auto& [list, bytes] : std::map<std::string, int64_t>{{"[[9, 4, 1]]", 36}, {"[]", 0}}) {
    const std::string text = Replaced(results, "\"name\": \"small\",",
                                      "\"name\": \"small\", \"optimized_tensors\": " + list + ",");
    const JointGraph graph = ReadJointGraphJson(text, "g.json").value();
    CHECK_FALSE(OptimizedOf(graph).is_unknown);
    CHECK(OptimizedOf(graph).bytes == Bytes(bytes));
    CHECK(ReadJointGraphJson(WriteJointGraphJson(graph), "g.json").value() == graph);
  }
}

TEST_CASE("joint graph files: the minimal form") {
  const Result<JointGraph> graph = ReadJointGraphJson(kMinimalJoint, "g.json");
  REQUIRE(graph.ok());
  CHECK(graph->op(OpId(1)).name == "op1");
  CHECK(graph->op(OpId(2)).reads == std::vector<ValueId>{ValueId(1), ValueId(0)});
  CHECK(graph->op(OpId(2)).writes == std::vector<ValueId>{ValueId(2)});
  CHECK(graph->op(OpId(0)).cost == Cost(10));
  CHECK(graph->value(ValueId(0)).bytes == Bytes(4));
  CHECK(graph->results() == std::vector<ValueId>{ValueId(2)});
  const std::string others =
      Replaced(kMinimalJoint, "{", R"({"kind": "joint", "results": [2, 0], )");
  CHECK(ReadJointGraphJson(others, "g.json")->results() ==
        std::vector<ValueId>{ValueId(2), ValueId(0)});
}

TEST_CASE("joint graph files: the kind of a text is recognised") {
  const auto is_joint = [](const std::string& text) {
    return std::holds_alternative<JointGraph>(ReadAnyGraphJson(text, "g.json").value());
  };
  CHECK(is_joint(kFullJoint));
  CHECK(is_joint(kMinimalJoint));
  CHECK_FALSE(is_joint(R"({"nodes": [{"id": 0, "bytes": 1, "time": 1}], "edges": []})"));
  CHECK_FALSE(is_joint(
      R"({"nodes": [{"id": 0, "bytes": 1, "time": 1}], "edges": [], "ops": [], "kind": 1})"));
  CHECK(ReadAnyGraphJson(R"({"kind": "joint"})", "g.json").error().message ==
        "g.json: /: the key \"ops\" is missing");
  CHECK(ReadAnyGraphJson("{}", "g.json").error().message.find("\"nodes\" is missing") !=
        std::string::npos);
}

TEST_CASE("joint graph files: every required key is missed by name") {
  for (const std::string key :
       {"id", "bytes", "kind", "reads", "writes", "cost", "ops", "results"}) {
    CAPTURE(key);
    const std::string faults = JointFaults(Replaced(kFullJoint, "\"" + key + "\"", "\"other\""));
    CHECK(faults.find("the key \"" + key + "\" is missing") != std::string::npos);
  }
  for (const std::string key : {"bytes", "time", "reads", "ops"}) {
    CAPTURE(key);
    const std::string faults = JointFaults(Replaced(kMinimalJoint, "\"" + key + "\"", "\"other\""));
    CHECK(faults.find("the key \"" + key + "\" is missing") != std::string::npos);
  }
}

TEST_CASE("joint graph files: faults are reported with their places") {
  const struct {
    std::string from, to, fault;
  } kRows[] = {
      {"\"bytes\": 12", "\"bytes\": 12.0", "g.json: /values/1/bytes: is a number that is no"},
      {"\"bytes\": 12", "\"bytes\": -1", "g.json: /values/1/bytes: -1 is out of range"},
      {"\"bytes\": 12", "\"bytes\": 9223372036854775807", "overflow the limit"},
      {"\"cost\": 80", "\"cost\": 9223372036854775807", "overflow the limit"},
      {"\"id\": 7,", "\"id\": 4,", "/values/1/id: another value has the id 4 too"},
      {"\"id\": 20", "\"id\": 10", "/ops/1/id: another operation has the id 10 too"},
      {"\"alias_of\": 3", "\"alias_of\": 33", "/values/0/alias_of: no value has the id 33"},
      {"\"alias_of\": 3", "\"alias_of\": 4",
       "/values/0/alias_of: a value cannot be an alias of itself"},
      {"\"alias_of\": 3", "\"alias_of\": 7",
       "g.json: graph \"small\": value \"s\" is in the memory of \"x\", which \"view\" does not"},
      {"\"constant\"", "\"weight\"", "/values/1/kind: \"weight\" is unknown"},
      {"\"backward\"", "\"loss\"", "/ops/3/phase: \"loss\" is unknown"},
      {"\"never\"", "\"no\"", "/ops/0/repeat: \"no\" is unknown"},
      {"[7, 8]", "[7, 9]", "/ops/0/reads/1: no value has the id 9"},
      {"[7, 8]", "7", "/ops/0/reads: is an integer, must be an array"},
      {"[7, 8]", "[7, 5]", "value \"dw\" is read before \"conv_grad\" makes it"},
      {"[5]", "[3]", "value \"r\" is made twice"},
      {"[[3, 9223372036854775807]]", "[[3]]", "/ops/1/in_place/0: must be a pair [write, read]"},
      {"\"results\": [4]", "\"results\": [4, 4]", "/results/1: this value is already a result"},
      {"\"kind\": \"joint\"", "\"kind\": \"joined\"", "/kind: \"joined\" is unknown"},
      {"\"1.0\"", "\"2.0\"", "/schema_version: unknown version \"2.0\""},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.to);
    const std::string faults = JointFaults(Replaced(kFullJoint, row.from, row.to));
    CAPTURE(faults);
    CHECK(faults.find(row.fault) != std::string::npos);
  }
  CHECK(JointFaults(Replaced(kMinimalJoint, "[1, 0]", "[1, 3]")) ==
        "g.json: /ops/2/reads/1: no operation 3; operations are numbered from 0 in list order");
  CHECK(JointFaults(Replaced(kMinimalJoint, "[0]", "[2]")).find("is read before \"c\" makes it") !=
        std::string::npos);
  CHECK(JointFaults("{\"ops\": []}") ==
        "g.json: /ops: a joint graph must have at least one operation");
  CHECK(JointFaults("[]").find("g.json: /: is an array, must be an object") == 0);
}

TEST_CASE("joint graph files: cut off anywhere, it is an error and nothing else") {
  for (const std::string& text : {kFullJoint, kMinimalJoint}) {
    for (size_t length = 0; length < text.size(); ++length) {
      CAPTURE(length);
      CHECK_FALSE(ReadJointGraphJson(text.substr(0, length), "g.json").ok());
    }
  }
}

TEST_CASE("joint graph files: random damage is an error or another graph, never a crash") {
  int errors = 0, graphs = 0;
  for (uint64_t seed = 0; seed < Instances(4000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const std::string text = DamageRandomly(rng, rng.Chance(50) ? kFullJoint : kMinimalJoint);
    const Result<JointGraph> graph = ReadJointGraphJson(text, "g.json");
    if (!graph.ok()) {
      ++errors;
      CHECK(graph.error().code == ErrorCode::kInvalidInput);
      CHECK(graph.error().message.find("g.json: ") == 0);
    } else {
      ++graphs;
      CHECK(*ReadJointGraphJson(WriteJointGraphJson(*graph), "g.json") == *graph);
    }
  }
  CHECK((errors > Instances(1000) && graphs > Instances(100)));
}

}  // namespace ckplan
