#include "lib/files/model/eager_notes.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

// Notes by the node's number.
using Notes = std::map<int, std::pair<std::string, std::string>>;

onnx::ModelProto WithNotes(const std::string& graph, const Notes& notes) {
  onnx::ModelProto proto = ParseGraph(graph);
  auto& mark = *proto.mutable_graph()->add_metadata_props();
  mark.set_key("ckplan.eager");
  mark.set_value("1");
  for (const auto& [node, note] : notes) {
    auto& property = *proto.mutable_graph()->mutable_node(node)->add_metadata_props();
    property.set_key(note.first);
    property.set_value(note.second);
  }
  return proto;
}

LoadOptions Captured(Autograd autograd) {
  LoadOptions options;
  options.restored = RestoredOperators::kCaptured;
  options.autograd = autograd;
  return options;
}

ModelGraph Lowered(const onnx::ModelProto& proto, Autograd autograd = Autograd::kTorchCuda) {
  return LowerProto(proto, Captured(autograd), autograd);
}

constexpr const char* kActivations =
    "g (float[2,4] x) => (float[2,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> "
    "{ h = MatMul(x, w) a = LeakyRelu(h) y = Relu(a) }";

TEST_CASE("eager notes: an activation in place saves its result, and others aren't in place") {
  const Notes notes = {{1, {"ckplan.in_place", "1"}}};
  const TensorGraph graph = Lowered(WithNotes(kActivations, notes)).graph;
  const Node& leaky = NodeOf(graph, "LeakyRelu");
  CHECK(NamesOf(graph, leaky.backward_reads) == "a");
  CHECK(leaky.in_place.size() == 1);
  CHECK(NodeOf(graph, "Relu").in_place.empty());
  CHECK(leaky.backward_workspace == Bytes(0));

  const Notes on_view = {{1, {"ckplan.in_place", "view"}}};
  const TensorGraph viewed = Lowered(WithNotes(kActivations, on_view)).graph;
  CHECK(NamesOf(viewed, NodeOf(viewed, "LeakyRelu").backward_reads) == "a");
  CHECK(NodeOf(viewed, "LeakyRelu").backward_workspace == Bytes(64));

  const TensorGraph silent = Lowered(ParseGraph(kActivations)).graph;
  CHECK(NamesOf(silent, NodeOf(silent, "LeakyRelu").backward_reads) == "h");
  CHECK(NodeOf(silent, "Relu").in_place.size() == 1);
}

TEST_CASE("eager notes: they're for PyTorch's autograd, and for models read as captured") {
  const onnx::ModelProto proto = WithNotes(kActivations, {{1, {"ckplan.in_place", "1"}}});
  const TensorGraph minimal = Lowered(proto, Autograd::kMinimal).graph;
  CHECK(NodeOf(minimal, "Relu").in_place.size() == 1);
  const TensorGraph plain = LowerProto(proto, {}, Autograd::kTorchCuda).graph;
  CHECK(NamesOf(plain, NodeOf(plain, "LeakyRelu").backward_reads) == "h");
}

TEST_CASE("eager notes: a dropout in place has a factor of the tensor's type on a GPU, too") {
  const std::string graph =
      "g (float[2,4] x) => (float[2,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, float "
      "ratio = {0.1}, bool yes = {1}> { h = MatMul(x, w) y = Dropout(h, ratio, yes) }";
  const auto mask = [&graph](const Notes& notes) {
    const TensorGraph lowered = Lowered(WithNotes(graph, notes)).graph;
    return lowered.tensor(NodeOf(lowered, "Dropout").outputs.back()).bytes.count();
  };
  CHECK(mask({}) == 8);
  CHECK(mask({{1, {"ckplan.in_place", "1"}}}) == 32);
}

TEST_CASE("eager notes: each operation that copies a moved tensor saves a copy of its own") {
  const std::string graph =
      "g (float[2,4,3] x) => (float[2,3,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, "
      "int64[3] shape = {2,3,4}> "
      "{ t = Transpose<perm = [0,2,1]>(x) r = Reshape(t, shape) a = MatMul(r, w) b = MatMul(t, w) "
      "c = Mul(a, t) y = Add(b, c) }";
  const auto transposes = [&graph](const Notes& notes) {
    int count = 0;
    const TensorGraph lowered = Lowered(WithNotes(graph, notes)).graph;
    for (const Node& node : lowered.nodes()) {
      count += node.op == "Transpose" ? 1 : 0;
    }
    return count;
  };
  const std::pair<std::string, std::string> first = {"ckplan.copies", "0"};
  CHECK(transposes({}) == 1);
  CHECK(transposes({{2, first}}) == 2);
  CHECK(transposes({{2, first}, {3, first}}) == 3);
  CHECK(transposes({{4, {"ckplan.copies", "0"}}}) == 1);  // What is computed is not moved.
  // All three readers copy; the last one takes the Transpose of the file.
  CHECK(transposes({{2, first}, {3, first}, {4, {"ckplan.copies", "1"}}}) == 3);
  CHECK(transposes({{2, {"ckplan.copies", "7,x,,"}}}) == 1);

  const TensorGraph lowered = Lowered(WithNotes(graph, {{2, first}})).graph;
  CHECK(NamesOf(lowered, NodeOf(lowered, "MatMul").backward_reads) == "t for MatMul:a");
}

TEST_CASE("eager notes: a parameter without requires_grad has no gradient") {
  const std::string graph =
      "g (float[2,4] x) => (float[2,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, "
      "float[4] b = {1,2,3,4}, float[4] v = {1,2,3,4}> "
      "{ h = MatMul(x, w) a = Add(h, b) y = Mul(a, v) }";
  onnx::ModelProto proto = WithNotes(graph, {});
  auto& info = *proto.mutable_graph()->add_value_info();
  info.set_name("w");
  auto& note = *info.add_metadata_props();
  note.set_key("ckplan.requires_grad");
  note.set_value("False");
  CHECK(Lowered(proto).graph.constants().parameter_gradients == Bytes(32));
  CHECK(Lowered(proto).graph.constants().parameters == Bytes(96));
  note.set_value("True");
  CHECK(Lowered(proto).graph.constants().parameter_gradients == Bytes(96));
}

}  // namespace
}  // namespace ckplan
