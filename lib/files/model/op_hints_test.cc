// Tests of operators that the user describes: shapes, cost and what backward reads.
#include <algorithm>

#include "lib/files/model/testing_proto.h"

namespace ckplan {
namespace {

constexpr const char* kGraph =
    "g (float[N,8] x) => (float[N,4] y) <float w = {2}, float[8,4] p = "
    "{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
    "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> { a = Mul(x, w) b = acme.Norm(a) c = acme.Project<N = "
    "4>(b, "
    "p) y = Neg(c) }";

ModelGraph Described(std::vector<std::string> op_shapes) {
  LoadOptions options = BatchOf(2);
  options.op_shapes = std::move(op_shapes);
  onnx::ModelProto proto = ParseGraph(kGraph);
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
  CHECK(reads("acme::Norm=like:0;reads=x7,y3").empty());
}

TEST_CASE("op hints: FLOPs add to the cost") {
  const auto cost = [](const std::string& norm) {
    const ModelGraph lowered = Described({norm, "acme::Project=[0.0,1.-1]"});
    return NodeOf(lowered.graph, "acme.Norm").forward_cost;
  };
  CHECK(cost("acme::Norm=like:0;flops=1000000000") > cost("acme::Norm=like:0"));
}

TEST_CASE("op hints: a description that doesn't fit is named") {
  LoadOptions options = BatchOf(2);
  options.op_shapes = {"acme::Norm=like:3", "acme::Project=[0.0,1.-1]"};
  onnx::ModelProto proto = ParseGraph(kGraph);
  CheckFails(LoadProto(proto, options), ErrorCode::kInvalidInput,
             "names operands or axes that it doesn't have");
}

}  // namespace
}  // namespace ckplan
