#include "lib/planning/explain/find_subjects.h"

#include <doctest/doctest.h>

#include "lib/problem/graph/origins.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// conv (makes c and the statistic c:mean) ─▶ relu (makes a tensor that is also named "relu")
TensorGraph Net() {
  TensorGraphParts parts;
  const auto tensor = [&](const char* name) {
    Tensor added;
    added.file_id = static_cast<int64_t>(parts.tensors.size());
    added.name = name;
    added.bytes = Bytes(4);
    return parts.tensors.push_back(added);
  };
  const auto node = [&](const char* name, std::vector<TensorId> inputs,
                        std::vector<TensorId> outputs) {
    Node added;
    added.file_id = static_cast<int64_t>(parts.nodes.size());
    added.name = name;
    added.inputs = std::move(inputs);
    added.outputs = std::move(outputs);
    parts.nodes.push_back(added);
  };
  const TensorId c = tensor("c"), mean = tensor("c:mean"), relu = tensor("relu"), last = tensor("");
  node("/block/conv", {}, {c, mean});
  node("relu", {c}, {relu});
  node("", {relu}, {last});
  parts.outputs = {last};
  return TensorGraph::Create(parts).value();
}

struct Names {
  TensorGraph graph = Net();
  std::vector<AbsentValue> absent = {{"flat", AbsentValue::Kind::kView, TensorId(2)},
                                     {"weight", AbsentValue::Kind::kConstant, TensorId()}};

  // "node /block/conv, tensor c": what was found.
  std::string Of(std::string_view name) const {
    const Result<std::vector<Subject>> found = FindSubjects(graph, absent, name);
    if (!found.ok()) return "error: " + found.error().message;
    std::string text;
    for (const Subject& subject : *found) {
      text += text.empty() ? "" : ", ";
      text += subject.absent != nullptr ? "absent " : subject.node.is_none() ? "tensor " : "node ";
      text += subject.name;
    }
    return text;
  }
};

}  // namespace

TEST_CASE("find subjects: by name, module and pattern") {
  const Names names;
  CHECK(names.Of("c") == "tensor c");
  CHECK(names.Of("c:mean") == "tensor c:mean");
  // A node and its own output are one subject.
  CHECK(names.Of("relu") == "node relu");
  CHECK(names.Of("tensor:relu") == "tensor relu");
  CHECK(names.Of("node:relu") == "node relu");
  CHECK(names.Of("/block") == "node /block/conv");
  CHECK(names.Of("module:/block") == "node /block/conv");
  CHECK(names.Of("flat") == "absent flat");
  CHECK(names.Of("weight") == "absent weight");
  // Without a name, a node or tensor is found by its number in files.
  CHECK(names.Of("node 2") == "node node 2");
  CHECK(names.Of("tensor 3") == "tensor tensor 3");
  CHECK(names.Of("c*") == "tensor c, tensor c:mean");
  CHECK(names.Of("tensor:*") ==
        "tensor c, tensor c:mean, tensor relu, tensor tensor 3, absent flat, absent weight");
  CHECK(names.Of("*") == "node /block/conv, node relu, node node 2, absent flat, absent weight");
}

TEST_CASE("find subjects: an unknown name is refused with similar names") {
  const Names names;
  CHECK(names.Of("relv") ==
        "error: no node, tensor or module is named \"relv\"; did you mean \"relu\"?");
  CHECK(names.Of("node:c").starts_with("error: "));
  CHECK(names.Of("x*y") == "error: no node or tensor matches \"x*y\"");
  const Error error = FindSubjects(names.graph, names.absent, "block").error();
  CHECK(error.code == ErrorCode::kUsage);
  REQUIRE(error.notes.size() == 1);
  CHECK(error.notes[0] == "similar: \"/block/conv\"");
}

TEST_CASE("find subjects: a path with dots names the module that ends with it") {
  const TensorGraph graph = GraphFromText("/layer3/layer3.1/conv:4 -> /layer3/layer3.2/conv:4");
  const Result<std::vector<Subject>> found = FindSubjects(graph, {}, "layer3.1");
  REQUIRE(found.ok());
  REQUIRE(found->size() == 1);
  CHECK(found->front().name == "/layer3/layer3.1/conv");
  CHECK(FindSubjects(graph, {}, "/layer3")->size() == 2);
  CHECK_FALSE(FindSubjects(graph, {}, "layer3").ok());
}

TEST_CASE("find subjects: modules as the exporter names them") {
  const TensorGraph graph = Net();
  ModuleCalls modules;
  modules.calls = {{"", "Net", -1}, {"layer1", "Layer", 0}, {"layer1.0.conv", "Conv2d", 1}};
  modules.call_of = IdVector<NodeId, int32_t>(std::vector<int32_t>{2, 1, -1});
  const TrainingStep planned(graph, &modules);
  const std::vector<std::string> chain = {"layer1", "layer1.0", "layer1.0.conv"};
  CHECK(planned.ModulesOf(NodeId(0)) == chain);
  CHECK(planned.ModulesOf(NodeId(2)).empty());
  CHECK(FindSubjects(planned, {}, "layer1")->size() == 2);
  CHECK(FindSubjects(planned, {}, "layer1.0")->size() == 1);
}

}  // namespace ckplan
