// Tests of operators that the user describes: shapes, cost and what backward reads.
#include <algorithm>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

constexpr const char* kHintedGraph =
    "g (float[N,8] x) => (float[N,4] y) <float w = {2}, float[8,4] p = "
    "{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
    "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> { a = Mul(x, w) b = acme.Norm(a) c = acme.Project<N = "
    "4>(b, "
    "p) y = Neg(c) }";

ModelGraph Described(std::vector<std::string> op_shapes) {
  LoadOptions options = BatchOf(2);
  options.op_shapes = std::move(op_shapes);
  onnx::ModelProto proto = ParseGraph(kHintedGraph);
  proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return LowerProto(proto, options);
}

TEST_CASE("op hints: shapes follow operands and attributes") {
  for (const char* project :
       {"acme::Project=[0.0,1.-1]", "acme::Project=[0.*,@N]", "acme::Project=float32[0.0,4]"}) {
    CAPTURE(project);
    const ModelGraph lowered = Described({"acme::Norm=like:0", project});
    CHECK(NodeOf(lowered.graph, "acme.Norm").outputs.size() == 1);
    CHECK(lowered.graph.tensor(lowered.graph.outputs()[0]).bytes == Bytes(2 * 4 * 4));
  }
}

TEST_CASE("op hints: what backward reads is what the user says, and all without it") {
  const auto reads = [](const std::string& norm) {
    const ModelGraph lowered = Described({norm, "acme::Project=[0.0,1.-1];reads=x1"});
    return NamesOf(lowered.graph, NodeOf(lowered.graph, "acme.Norm").backward_reads);
  };
  CHECK(reads("acme::Norm=like:0") == "a b");
  CHECK(reads("acme::Norm=like:0;reads=x0") == "a");
  CHECK(reads("acme::Norm=like:0;reads=y0") == "b");
  CHECK(reads("acme::Norm=like:0;reads=none").empty());
}

TEST_CASE("op hints: FLOPs add to the cost") {
  const auto cost = [](const std::string& norm) {
    const ModelGraph lowered = Described({norm, "acme::Project=[0.0,1.-1]"});
    return NodeOf(lowered.graph, "acme.Norm").forward_cost;
  };
  CHECK(cost("acme::Norm=like:0;flops=1000000000") > cost("acme::Norm=like:0"));
}

Result<Model> LoadDescribed(std::vector<std::string> op_shapes,
                            const std::string& graph = kHintedGraph,
                            std::set<std::string> optional = {}) {
  LoadOptions options = BatchOf(2);
  options.op_shapes = std::move(op_shapes);
  options.optional_dims = std::move(optional);
  return LoadProto(ParseGraph(graph), options);
}

TEST_CASE("op hints: a description that doesn't fit is named") {
  const std::string project = "acme::Project=[0.0,1.-1]";
  for (const char* norm : {"acme::Norm=like:3", "acme::Norm=[0.0,0.2]", "acme::Norm=[0.0,@N]",
                           "acme::Norm=[0.0,0{0}]", "acme::Norm=[0.0,1{0}]"}) {
    CAPTURE(norm);
    CheckFails(LoadDescribed({norm, project}), ErrorCode::kInvalidInput,
               "refers to an operand, axis or integer attribute that this node lacks");
  }
  for (const char* reads : {"x1", "x9", "x0,x1", "y1", "x0,y7"}) {
    CAPTURE(reads);
    CheckFails(LoadDescribed({std::string("acme::Norm=like:0;reads=") + reads, project}),
               ErrorCode::kInvalidInput, "--op-shape acme::Norm: reads=");
  }
}

TEST_CASE("op hints: only a whole number is a size, whatever the attribute's type") {
  const std::string typed =
      "g (float[N,8] x) => (float[N,8] y) <float w = {2}> { a = Mul(x, w) b = "
      "acme.Cut<f = 4.0, s = \"4\", l = [4], n = -4, i = 4>(a) y = Neg(a) z = Relu(b) }";
  for (const char* attribute : {"f", "s", "l", "n", "absent"}) {
    CAPTURE(attribute);
    LoadOptions options = BatchOf(2);
    options.op_shapes = {std::string("acme::Cut=[0.0,@") + attribute + "]"};
    options.outputs = {"z"};
    CheckFails(LoadProto(ParseGraph(typed), options), ErrorCode::kInvalidInput,
               "refers to an operand, axis or integer attribute");
  }
  LoadOptions options = BatchOf(2);
  options.op_shapes = {"acme::Cut=[0.0,@i]"};
  options.outputs = {"z"};
  const ModelGraph lowered = LowerProto(ParseGraph(typed), options);
  CHECK(lowered.graph.tensor(lowered.graph.outputs()[0]).bytes == Bytes(2 * 4 * 4));
}

TEST_CASE("op hints: a size may be a number that an operand holds") {
  const std::string graph =
      "g (float[N,8] x) => (float[N,5] y) <float w = {2}, int64[2] s = {7,5}> { a = Mul(x, w) "
      "y = acme.Resize(a, s) }";
  LoadOptions options = BatchOf(2);
  options.op_shapes = {"acme::Resize=[0.0,1{1}]"};
  const ModelGraph lowered = LowerProto(ParseGraph(graph), options);
  CHECK(lowered.graph.tensor(lowered.graph.outputs()[0]).bytes == Bytes(2 * 5 * 4));
}

TEST_CASE("op hints: an operator of yours may lack a domain") {
  const std::string graph =
      "g (float[N,8] x) => (float[N,8] y) <float w = {2}> { a = Mul(x, w) y = RoiPool(a) }";
  onnx::ModelProto proto = ParseGraph(graph);
  proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  LoadOptions options = BatchOf(2);
  options.op_shapes = {"RoiPool=[0.0,3];reads=x0"};
  const ModelGraph lowered = LowerProto(proto, options);
  CHECK(lowered.graph.tensor(lowered.graph.outputs()[0]).bytes == Bytes(2 * 3 * 4));
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "RoiPool").backward_reads) == "a");
}

TEST_CASE("op hints: a description that has no effect is refused, unless it is optional") {
  const std::string graph =
      "g (float[N,8] x) => (float[N,8] y) <float w = {2}> { a = Mul(x, w) b = acme.Norm(a) "
      "y = Relu(a) }";
  const std::string norm = "acme::Norm=like:0";
  CHECK(LoadDescribed({norm}, graph).ok());  // The step leaves it out.
  CheckFails(LoadDescribed({norm, "acme::Nrom=like:0"}, graph), ErrorCode::kUsage,
             "--op-shape acme::Nrom: the model has no such operator; did you mean \"acme::Norm\"?");
  CHECK(LoadDescribed({norm, "acme::Nrom=like:0"}, graph, {"acme::Nrom="}).ok());
  CheckFails(LoadDescribed({norm, "Relu=[1]"}, graph), ErrorCode::kUsage,
             "--op-shape Relu: ckplan already knows this operator");
  CheckFails(LoadDescribed({norm, "ai.onnx::Mul=[1]"}, graph), ErrorCode::kUsage,
             "ckplan already knows this operator");
}

TEST_CASE("op hints: operators of ONNX's other domains may be described") {
  const onnx::ModelProto proto = ParseText(
      "<ir_version: 10, opset_import: [\"\" : 20, \"ai.onnx.ml\" : 3]> g (float[N,8] x) => "
      "(float[a,b] y) <float w = {2}> { m = Mul(x, w) y = ai.onnx.ml.LinearRegressor"
      "<coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>(m) }");
  LoadOptions options = BatchOf(2);
  CheckFails(LoadProto(proto, options), ErrorCode::kInvalidInput,
             "ONNX has no rule for its shape; declare the type of its outputs in value_info, or "
             "describe it with --op-shape");
  options.op_shapes = {"ai.onnx.ml::LinearRegressor=[0.0,1];reads=none"};
  const ModelGraph lowered = LowerProto(proto, options);
  CHECK(lowered.graph.tensor(lowered.graph.outputs()[0]).bytes == Bytes(2 * 4));
  CHECK(NodeOf(lowered.graph, "ai.onnx.ml.LinearRegressor").backward_reads.empty());
  options.op_shapes = {"ai.onnx.ml::LinearRegressor=[0.0,1];reads=x1"};
  CheckFails(LoadProto(proto, options), ErrorCode::kInvalidInput,
             "reads=x1, but a node of this type has 1 input at most");
}

TEST_CASE("op hints: the user's description replaces ckplan's own") {
  const std::string graph =
      "g (float[N,8] x) => (float[N,8] y) <float w = {2}> { a = Mul(x, w) "
      "y = com.microsoft.Gelu(a) }";
  LoadOptions options = BatchOf(2);
  options.op_shapes = {"com.microsoft::Gelu=like:0;reads=none"};
  const ModelGraph lowered = LowerProto(ParseGraph(graph), options);
  CHECK(NodeOf(lowered.graph, "com.microsoft.Gelu").backward_reads.empty());
}

}  // namespace
}  // namespace ckplan
