// Tests how much memory quantized weights count, and what is reported about them.
#include <algorithm>

#include "lib/model/constant.h"
#include "lib/model/testing_proto.h"

namespace ckplan {
namespace {

void AddWeight(onnx::ModelProto& proto, const char* name, int32_t type, const Dims& dims) {
  onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
}

bool IsReported(const ModelGraph& lowered, const std::string& part) {
  return std::any_of(lowered.warnings.begin(), lowered.warnings.end(),
                     [&part](const std::string& warning) {
                       return warning.find("weights are quantized") != std::string::npos &&
                              warning.find(part) != std::string::npos;
                     });
}

TEST_CASE("quantized: weights read by DequantizeLinear count as stored, and are not trained") {
  for (const auto& row : {std::pair{onnx::TensorProto::INT8, 32 * 16},
                          std::pair{onnx::TensorProto::UINT4, 32 * 16 / 2}}) {
    const auto type = row.first;
    const int64_t bytes = row.second;
    onnx::ModelProto proto = ParseGraph(
        "g (float[4,32] x) => (float[4,16] y) <float[32] g = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, float scale = {0.5}> "
        "{ h = Mul(x, g) w = DequantizeLinear(q, scale) y = MatMul(h, w) }",
        21);
    AddWeight(proto, "q", type, {32, 16});
    const ModelGraph lowered = LowerProto(proto);
    CAPTURE(bytes);
    // The trained vector, the scale, and the weight.
    CHECK(lowered.graph.constants().parameters == Bytes(32 * 4 + 4 + bytes));
    CHECK(lowered.graph.constants().parameter_gradients < Bytes(32 * 4 + 4 + bytes));
    CHECK(IsReported(lowered,
                     type == onnx::TensorProto::INT8 ? "\"q\" int8[32,16]" : "\"q\" uint4[32,16]"));
  }
}

TEST_CASE("quantized: weights read by an operator on integers count as stored") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[4,32] x) => (float[4,16] y) <float s = {0.5}> "
      "{ a, scale, zero = DynamicQuantizeLinear(x) p = MatMulInteger(a, q, zero) "
      "  f = Cast<to = 1>(p) y = Mul(f, s) }");
  AddWeight(proto, "q", onnx::TensorProto::INT8, {32, 16});
  const ModelGraph lowered = LowerProto(proto);
  CHECK(lowered.graph.constants().parameters == Bytes(32 * 16 + 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(0));
  CHECK(IsReported(lowered, "\"q\" int8[32,16]"));
}

TEST_CASE("quantized: weights read by an unknown operator count as stored") {
  onnx::ModelProto proto = ParseGraph(
      "g (float[4,32] x) => (float[4,16] y) { y = com.microsoft.MatMulNBits(x, q, scales) }");
  AddWeight(proto, "q", onnx::TensorProto::UINT8, {16, 1, 16});
  AddWeight(proto, "scales", onnx::TensorProto::FLOAT, {16});
  const ModelGraph lowered = LowerProto(proto);
  CHECK(lowered.graph.constants().parameters == Bytes(16 * 16 + 16 * 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(16 * 4));
  CHECK(IsReported(lowered, "\"q\" uint8[16,1,16]"));
}

TEST_CASE("quantized: zero points count without a warning, booleans and indices not at all") {
  const ModelGraph lowered = LowerText(
      "g (float[4,2] x) => (float[4,2] y) <float[2] w = {1,2}, uint8 zero = {3}, float s = {0.5}, "
      "bool[2] mask = {1,0}, int64[2] order = {1,0}> "
      "{ a = Mul(x, w) q = QuantizeLinear(a, s, zero) b = DequantizeLinear(q, s, zero) "
      "  c = Where(mask, b, a) y = Gather<axis = 1>(c, order) }");
  CHECK(lowered.graph.constants().parameters == Bytes(2 * 4 + 4 + 1));
  CHECK_FALSE(IsReported(lowered, ""));
}

}  // namespace
}  // namespace ckplan
