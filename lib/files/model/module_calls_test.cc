// Tests which module each node comes from, by the metadata of exporters.
#include "lib/files/model/module_calls.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

using Strings = std::vector<std::string>;

// Returns how many calls there are of classes whose names have this ending.
int CallsOfClass(const ModuleCalls& modules, const std::string& name) {
  int count = 0;
  for (const ModuleCall& call : modules.calls) count += call.class_name.ends_with(name) ? 1 : 0;
  return count;
}

// Makes a chain of Relus with the given scopes and classes.
ModuleCalls CallsOf(const std::vector<std::pair<std::string, std::string>>& nodes) {
  std::string body;
  for (size_t i = 0; i < nodes.size(); ++i) {
    body += "t" + std::to_string(i + 1) + " = Relu(t" + std::to_string(i) + ") ";
  }
  onnx::ModelProto proto =
      ParseGraph("g (float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { t0 = Mul(x, w) " +
                 body + "y = Neg(t" + std::to_string(nodes.size()) + ") }");
  for (size_t i = 0; i < nodes.size(); ++i) {
    onnx::NodeProto& node = *proto.mutable_graph()->mutable_node(static_cast<int>(i) + 1);
    const auto add = [&node](const std::string& key, const std::string& value) {
      onnx::StringStringEntryProto& property = *node.add_metadata_props();
      property.set_key(key);
      property.set_value(value);
    };
    add("pkg.torch.onnx.name_scopes", nodes[i].first);
    add("pkg.torch.onnx.class_hierarchy", nodes[i].second);
  }
  return LowerProto(proto).modules;
}

}  // namespace

TEST_CASE("module calls: lists in Python's notation") {
  CHECK(ParsePythonStrings("[]") == Strings{});
  CHECK(ParsePythonStrings("['']") == Strings{""});
  CHECK(ParsePythonStrings("['', 'layer1', 'relu']") == Strings{"", "layer1", "relu"});
  CHECK(ParsePythonStrings(R"(["it's", 'a\'b', 'c\\d', 'e, f'])") ==
        Strings{"it's", "a'b", "c\\d", "e, f"});
  for (const char* text : {"", "[", "]", "x", "[1]", "['a'", "'a']", "['a',]", "['a', ]",
                           "['a' 'b']", "['a]", "['a\\']", "[,]"}) {
    CAPTURE(text);
    CHECK_FALSE(ParsePythonStrings(text).has_value());
  }
}

TEST_CASE("module calls: the scopes of nodes make a tree of calls") {
  const ModuleCalls modules =
      CallsOf({{"['', 'a', 'a.0', 'relu']", "['m.Net', 'm.Seq', 'm.Block', 'op']"},
               {"['', 'a', 'a.1', 'relu_1']", "['m.Net', 'm.Seq', 'm.Block', 'op']"},
               {"['', 'relu_2']", "['m.Net', 'op']"}});
  CHECK(modules.calls ==
        std::vector<ModuleCall>{
            {"", "m.Net", -1}, {"a", "m.Seq", 0}, {"a.0", "m.Block", 1}, {"a.1", "m.Block", 1}});
  // Mul and Neg have no metadata.
  CHECK(modules.call_of == IdVector<NodeId, int32_t>(std::vector<int32_t>{-1, 2, 3, 0, -1}));
}

TEST_CASE("module calls: a module that is entered again is called again") {
  const ModuleCalls modules =
      CallsOf({{"['', 'b', 'b.act', 'relu']", "['Net', 'Block', 'ReLU', 'op']"},
               {"['', 'b', 'b.conv', 'conv']", "['Net', 'Block', 'Conv', 'op']"},
               {"no list", "no list"},
               {"['', 'b', 'b.act', 'relu']", "['Net', 'Block', 'ReLU', 'op']"},
               {"['', 'c', 'relu']", "['Net', 'Block', 'op']"},
               {"['', 'b', 'relu']", "['Net', 'Block', 'op']"}});
  CHECK(modules.calls == std::vector<ModuleCall>{{"", "Net", -1},
                                                 {"b", "Block", 0},
                                                 {"b.act", "ReLU", 1},
                                                 {"b.conv", "Conv", 1},
                                                 {"b.act", "ReLU", 1},
                                                 {"c", "Block", 0},
                                                 {"b", "Block", 0}});
  CHECK(modules.call_of ==
        IdVector<NodeId, int32_t>(std::vector<int32_t>{-1, 2, 3, -1, 4, 5, 6, -1}));
}

TEST_CASE("module calls: exported networks name the module of every node") {
  struct Row {
    const char* name;
    const char* class_name;
    int calls;
  };
  const Row rows[] = {{"resnet18.modules", ".resnet.BasicBlock", 8},
                      {"resnet18.modules", ".BatchNorm2d", 20},
                      // There are nine modules, eight of which run twice.
                      {"resnet18.modules", ".ReLU", 17},
                      {"bert_4layers.modules", ".BertLayer", 4},
                      {"bert_4layers.modules", ".BertSelfAttention", 4}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CAPTURE(row.class_name);
    const std::string path = std::string("testdata/models/") + row.name + ".onnx";
    const Result<Model> model = LoadModel(path, BatchOf(2));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    LowerOptions lower;
    lower.cost = ParseCostModel("flops").value();
    const ModelGraph lowered = LowerModel(*model, lower).value();
    CHECK(CallsOfClass(lowered.modules, row.class_name) == row.calls);
    for (const NodeId node : lowered.graph.nodes().ids()) {
      CAPTURE(lowered.graph.node(node).name);
      CHECK(lowered.modules.call_of[node] >= 0);
    }
  }
}

TEST_CASE("module calls: unreadable metadata name no module") {
  for (const char* scopes : {"", "relu", "['relu']", "[1, 2]",
                             "['_empty_nn_module_stack_from_metadata_hook', 'relu']"}) {
    CAPTURE(scopes);
    const ModuleCalls modules = CallsOf({{scopes, "['Net', 'op']"}});
    CHECK(modules.empty());
    CHECK(modules.call_of == IdVector<NodeId, int32_t>(3, -1));
  }
  // A missing class is not a fault.
  CHECK(CallsOf({{"['', 'relu']", ""}}).calls == std::vector<ModuleCall>{{"", "", -1}});
}

}  // namespace ckplan
