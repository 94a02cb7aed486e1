// Tests the sizes that --activation-type gives to the tensors of a step.
#include <doctest/doctest.h>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

ModelGraph LowerAs(ActivationType type, const std::string& graph,
                   Autograd autograd = Autograd::kMinimal, int opset = 20) {
  LoadOptions options;
  options.activation_type = type;
  return LowerProto(ParseGraph(graph, opset), options, autograd);
}

int64_t BytesOf(const ModelGraph& lowered, std::string_view name) {
  for (const Tensor& tensor : lowered.graph.tensors()) {
    if (tensor.name == name) return tensor.bytes.count();
  }
  FAIL("no tensor " << std::string(name));
  return 0;
}

// Returns the bytes of the statistic that the first node with that operator saves.
int64_t StatisticBytesOf(const ModelGraph& lowered, const std::string& op) {
  const Tensor& last = lowered.graph.tensor(NodeOf(lowered.graph, op).outputs.back());
  REQUIRE(last.kind == TensorKind::kStatistic);
  return last.bytes.count();
}

constexpr const char* kPerceptron =
    "g (float[4,6] x) => (float[4,2] y) <float[6,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
    "float[2] b = {1,2}> { h = MatMul(x, w) a = Add(h, b) y = Relu(a) }";

TEST_CASE("activation type: bf16 halves values that depend on the batch, and nothing else") {
  const ModelGraph lowered = LowerAs(ActivationType::kBFloat16, kPerceptron);
  CHECK(BytesOf(lowered, "x") == 4 * 6 * 2);
  CHECK(BytesOf(lowered, "h") == 4 * 2 * 2);
  CHECK(BytesOf(lowered, "a") == 4 * 2 * 2);
  CHECK(BytesOf(lowered, "y") == 4 * 2 * 2);
  CHECK(lowered.graph.constants().inputs == Bytes(4 * 6 * 2));
  CHECK(lowered.graph.constants().parameters == Bytes((6 * 2 + 2) * 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes((6 * 2 + 2) * 4));
}

TEST_CASE("activation type: a float32 model is the same with and without float32") {
  const ModelGraph named = LowerAs(ActivationType::kFloat32, kPerceptron);
  const ModelGraph plain = LowerAs(ActivationType::kOfModel, kPerceptron);
  REQUIRE(named.graph.tensors().size() == plain.graph.tensors().size());
  for (const TensorId id : named.graph.tensors().ids()) {
    CHECK(named.graph.tensor(id).bytes == plain.graph.tensor(id).bytes);
  }
}

TEST_CASE("activation type: results are written in place, and gradients passed on, as before") {
  const ModelGraph lowered = LowerAs(ActivationType::kBFloat16, kPerceptron);
  CHECK(NodeOf(lowered.graph, "Add").in_place.size() == 1);
  CHECK(NodeOf(lowered.graph, "Add").gradient_passthrough.size() == 1);
  CHECK(NodeOf(lowered.graph, "Relu").in_place.size() == 1);
}

TEST_CASE("activation type: half precision grows to float32; its parameters do not") {
  constexpr const char* kHalf =
      "g (float16[4,6] x) => (float16[4,2] y) "
      "<float16[6,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { y = MatMul(x, w) }";
  const ModelGraph wide = LowerAs(ActivationType::kFloat32, kHalf);
  CHECK(BytesOf(wide, "x") == 4 * 6 * 4);
  CHECK(BytesOf(wide, "y") == 4 * 2 * 4);
  CHECK(wide.graph.constants().parameters == Bytes(6 * 2 * 2));
  CHECK(BytesOf(LowerAs(ActivationType::kBFloat16, kHalf), "y") == 4 * 2 * 2);
  CHECK(BytesOf(LowerAs(ActivationType::kOfModel, kHalf), "y") == 4 * 2 * 2);
}

TEST_CASE("activation type: a cast between floats is still a node") {
  const ModelGraph lowered = LowerAs(ActivationType::kBFloat16,
                                     "g (float[4] x) => (float16[4] y) <float[4] w = {1,2,3,4}> "
                                     "{ h = Mul(x, w) y = Cast<to = 10>(h) }");
  CHECK(BytesOf(lowered, "y") == 4 * 2);
  CHECK(lowered.graph.tensor(NodeOf(lowered.graph, "Cast").outputs[0]).name == "y");
}

TEST_CASE("activation type: integers and booleans keep their sizes") {
  const ModelGraph lowered =
      LowerAs(ActivationType::kBFloat16,
              "g (float[4,6] x) => (float[4,6] y) <float[6] w = {1,2,3,4,5,6}, float zero = {0}> "
              "{ h = Mul(x, w) m = Greater(h, zero) y = Where(m, h, zero) }");
  CHECK(BytesOf(lowered, "h") == 4 * 6 * 2);
  CHECK(BytesOf(lowered, "m") == 4 * 6);
}

TEST_CASE("activation type: statistics are numbers of four bytes, whatever the activation type") {
  constexpr const char* kNorm =
      "g (float[2,3,4] x) => (float[2,3,4] y) <float[3] s = {1,1,1}, float[3] b = {0,0,0}, "
      "float[3] m = {0,0,0}, float[3] v = {1,1,1}> { y = BatchNormalization(x, s, b, m, v) }";
  CHECK(StatisticBytesOf(LowerAs(ActivationType::kBFloat16, kNorm), "BatchNormalization") == 3 * 8);

  constexpr const char* kAttention =
      "g (float[2,4,10,2] q, float[2,4,12,2] k) => (float[2,4,10,2] y) <float[2] w = {1,2}> "
      "{ a = Mul(q, w) b = Mul(k, w) y = Attention(a, b, b) }";
  const int64_t scores = 2 * 4 * 10 * 12;
  const auto attention = [&](ActivationType type) {
    return StatisticBytesOf(LowerAs(type, kAttention, Autograd::kMinimal, 23), "Attention");
  };
  CHECK(attention(ActivationType::kBFloat16) == scores * 4);
  CHECK(attention(ActivationType::kFloat32) == scores * 4);

  constexpr const char* kRecurrent =
      "g (float16[5,2,1] x) => (float16[5,1,2,1] y) <float16[1,4,1] w = {1,2,3,4}, "
      "float16[1,4,1] r = {1,2,3,4}> { y = LSTM<hidden_size = 1>(x, w, r) }";
  const int64_t gates = 5 * 2 * 5;
  const auto reserve = [&](ActivationType type) {
    return StatisticBytesOf(LowerAs(type, kRecurrent), "LSTM");
  };
  // These have the type of the model's own numbers.
  CHECK(reserve(ActivationType::kOfModel) == gates * 2);
  CHECK(reserve(ActivationType::kBFloat16) == gates * 4);
}

TEST_CASE("activation type: PyTorch's dropout mask follows its tensor") {
  constexpr const char* kDropout =
      "g (float[4,6] x) => (float[4,6] y) <float[6] w = {1,2,3,4,5,6}> "
      "{ h = Mul(x, w) y = Dropout(h) }";
  const auto mask = [&](ActivationType type) {
    return StatisticBytesOf(LowerAs(type, kDropout, Autograd::kTorch), "Dropout");
  };
  CHECK(mask(ActivationType::kFloat32) == 4 * 6 * 4);
  CHECK(mask(ActivationType::kBFloat16) == 4 * 6 * 2);
}

TEST_CASE("activation type: less memory traffic, so no cost is higher") {
  const ModelGraph wide = LowerText(
      "g (float[64,1024,1024] x) => (float[64,1024,1024] y) <float w = {2}, float[1024] b = "
      "[\"location\": \"none\"]> { h = Add(x, b) y = Relu(h) }");
  const ModelGraph narrow = LowerAs(
      ActivationType::kBFloat16,
      "g (float[64,1024,1024] x) => (float[64,1024,1024] y) <float w = {2}, float[1024] b = "
      "[\"location\": \"none\"]> { h = Add(x, b) y = Relu(h) }");
  CHECK(narrow.graph.forward_cost() < wide.graph.forward_cost());
  CHECK(2 * narrow.graph.forward_cost().count() > wide.graph.forward_cost().count());
}

TEST_CASE("activation type: products of 16-bit operands cost what the 16-bit rate says") {
  // 2 * 8192 * 4096 * 4096 = 274,877,906,944 FLOP, and a launch of 4000 ns.
  constexpr const char* kProduct =
      "g (float[8192,4096] x) => (float[8192,4096] y) <float[4096,4096] w = [\"location\": "
      "\"none\"]> { y = MatMul(x, w) }";
  const auto cost = [&](ActivationType type) {
    return NodeOf(LowerAs(type, kProduct).graph, "MatMul").forward_cost;
  };
  CHECK(cost(ActivationType::kOfModel) == Cost(1'762'038 + 4'000));  // At 156 TFLOPS.
  CHECK(cost(ActivationType::kBFloat16) == Cost(881'019 + 4'000));   // At 312 TFLOPS.
}

TEST_CASE("activation type: sizes beyond any machine are refused") {
  LoadOptions options;
  options.activation_type = ActivationType::kFloat32;
  const Result<Model> model = LoadText(
      "g (float16[35184372088832,1000] x) => (float16[35184372088832,1000] y) { y = Relu(x) }",
      options);
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().code == ErrorCode::kInvalidInput);
  CHECK(model.error().message.find("\"x\"") != std::string::npos);
}

}  // namespace
}  // namespace ckplan
