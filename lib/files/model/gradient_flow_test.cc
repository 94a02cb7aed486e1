// Tests that a parameter counts as trained only if a gradient of the step reaches it.
#include <algorithm>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

// `before` makes "i" of "h", which is x times the 8 x 8 parameter "u"; "y" is made of "h" or "i",
// and of the parameter "w".
ModelGraph WithWeightBehind(const std::string& body, Autograd autograd = Autograd::kMinimal) {
  onnx::ModelProto proto = ParseGraph(
      "g (float[4,8] x) => (float[] y) <float zero = {0}> { h = MatMul(x, u) " + body + " }");
  for (const char* name : {"u", "w"}) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(8);
    tensor.add_dims(8);
  }
  proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return LowerProto(proto, {}, autograd);
}

constexpr int64_t kWeightBytes = 8 * 8 * 4;

TEST_CASE("gradient flow: nothing behind an index, a comparison or a whole number is trained") {
  for (const std::string body : {
           "i = Cast<to = 7>(h) f = Cast<to = 1>(i) y = MatMul(f, w)",
           "i = Greater(h, zero) f = Cast<to = 1>(i) y = MatMul(f, w)",
           "i = ArgMax<axis = 1, keepdims = 0>(h) y = Gather(w, i)",
           "i = Greater(h, zero) o = MatMul(x, w) y = Where(i, o, x)",
           "r = Relu(h) i = IsNaN(r) n = Not(i) f = Cast<to = 1>(n) y = MatMul(f, w)",
           "r = Reshape(h, s) i = Cast<to = 6>(r) f = Cast<to = 1>(i) o = Reshape(f, t) "
           "y = MatMul(o, w)",
           "v, i = TopK(h, k) y = Gather(w, i)",
       }) {
    CAPTURE(body);
    std::string text = body;
    if (text.find("Reshape") != text.npos) {
      text = "s = Constant<value_ints = [32]>() t = Constant<value_ints = [4, 8]>() " + text;
    }
    if (text.find("TopK") != text.npos) text = "k = Constant<value_ints = [2]>() " + text;
    for (const Autograd autograd : {Autograd::kMinimal, Autograd::kTorch}) {
      const ModelGraph lowered = WithWeightBehind(text, autograd);
      CHECK(lowered.graph.constants().parameter_gradients == Bytes(kWeightBytes));
      CHECK(lowered.graph.constants().parameters >= Bytes(2 * kWeightBytes));
      for (const Tensor& tensor : lowered.graph.tensors()) {
        if (tensor.name == "h") CHECK_FALSE(tensor.requires_grad);
      }
      const Node& first = NodeOf(lowered.graph, "MatMul");
      CHECK(first.backward_cost == Cost(0));
      CHECK(first.backward_reads.empty());
    }
  }
}

TEST_CASE("gradient flow: a second way to an output trains what is behind an index") {
  for (const std::string body : {
           "i = ArgMax<axis = 1, keepdims = 0>(h) e = Gather(w, i) y = Add(e, h)",
           "i = Greater(h, zero) f = Cast<to = 1>(i) m = Mul(f, h) y = MatMul(m, w)",
           "i = Greater(h, zero) n = MatMul(h, w) y = Where(i, n, x)",
       }) {
    CAPTURE(body);
    const ModelGraph lowered = WithWeightBehind(body);
    CHECK(lowered.graph.constants().parameter_gradients == Bytes(2 * kWeightBytes));
    CHECK(NodeOf(lowered.graph, "MatMul").backward_cost > Cost(0));
  }
}

TEST_CASE("gradient flow: a number that a Gemm adds is no bias") {
  const ModelGraph lowered = WithWeightBehind("y = Gemm(h, w, zero)");
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(2 * kWeightBytes));
}

TEST_CASE("gradient flow: only the part of a split that leads to an output has a gradient") {
  const ModelGraph lowered = WithWeightBehind(
      "a, b = Split<axis = 0, num_outputs = 2>(h) i = ArgMax<axis = 1, keepdims = 0>(b) "
      "e = Gather(w, i) n = Relu(a) y = Add(n, e)");
  CHECK(lowered.graph.constants().parameter_gradients == Bytes(2 * kWeightBytes));
  for (const Tensor& tensor : lowered.graph.tensors()) {
    if (tensor.name == "b") CHECK_FALSE(tensor.requires_grad);
  }
}

}  // namespace
}  // namespace ckplan
