// Tests which initializers of one element are trained, and which are numbers of the program.
#include "lib/files/model/testing_proto.h"

namespace ckplan {
namespace {

Bytes GradientsOf(const std::string& graph, const LoadOptions& options = {}) {
  return LowerText(graph, options).graph.constants().parameter_gradients;
}

// A graph of one vector, trained, and of an operation on it and the scalar `s`.
std::string WithScalar(const std::string& scalar, const std::string& operations) {
  return "g (float[2,3] x) => (float[2,3] y) <float[3] w = {1,2,3}, " + scalar +
         "> { h = Mul(x, w) " + operations + " }";
}

constexpr int64_t kVector = 3 * 4;

TEST_CASE("trained scalars: a one-element initializer is trained, whatever applies it") {
  for (const char* const shape : {"float", "float[1]", "float[1,1]"}) {
    for (const char* const apply :
         {"y = Mul(h, s)", "y = Mul(s, h)", "y = Add(h, s)", "y = Div(h, s)", "y = Sub(h, s)",
          "p = Abs(h) y = Pow(p, s)", "t = Tanh(s) y = Mul(h, t)",
          "t = Exp(s) u = Reciprocal(t) y = Mul(h, u)", "y = Min(h, s)",
          "m = IsNaN(h) y = Where(m, s, h)"}) {
      CAPTURE(shape);
      CAPTURE(apply);
      const std::string graph = WithScalar(std::string(shape) + " s = {0.5}", apply);
      CHECK(GradientsOf(graph) == Bytes(kVector + 4));
      LoadOptions frozen;
      frozen.freeze = {"s"};
      CHECK(GradientsOf(graph, frozen) == Bytes(kVector));
    }
  }
  CHECK(GradientsOf("g (float16[2,3] x) => (float16[2,3] y) <float16 alpha = {1}> "
                    "{ y = Mul(x, alpha) }") == Bytes(2));
}

TEST_CASE("trained scalars: the gradient of a scalar factor reads the other factor") {
  const std::string scalar = WithScalar("float s = {0.5}", "r = Relu(h) y = Mul(r, s)");
  const TensorGraph graph = LowerText(scalar).graph;
  CHECK(NamesOf(graph, graph.node(graph.tensor(graph.outputs()[0]).producer).backward_reads) ==
        "r");
  LoadOptions frozen;
  frozen.freeze = {"s"};
  const TensorGraph without = LowerText(scalar, frozen).graph;
  CHECK(without.node(without.tensor(without.outputs()[0]).producer).backward_reads.empty());
}

TEST_CASE("trained scalars: numbers that exporters and optimizers name are not trained") {
  for (const char* const name :
       {"val_61", "\"onnx::Mul_12\"", "\"/attn/Constant_3_output_0\"",
        "\"ortshared_1_0_1_0_token_8\"", "\"const_fold_opt__36\"", "\"model/mul/y:0\"", "Mu_Mulcst",
        "\"helper.constant.4\"", "\"model/Const_2:0\""}) {
    CAPTURE(name);
    const std::string s = name;
    CHECK(GradientsOf(WithScalar("float " + s + " = {0.5}", "y = Mul(h, " + s + ")")) ==
          Bytes(kVector));
  }
  for (const char* const name : {"\"blocks.0.alpha\"", "logit_scale", "\"pool.p\"", "gate_1",
                                 "\"model/gate/ReadVariableOp:0\"", "interval_4"}) {
    CAPTURE(name);
    const std::string s = name;
    CHECK(GradientsOf(WithScalar("float " + s + " = {0.5}", "y = Mul(h, " + s + ")")) ==
          Bytes(kVector + 4));
  }
}

TEST_CASE("trained scalars: a numeric name belongs to an exporter, not the model") {
  onnx::ModelProto proto = ParseGraph(WithScalar("float s = {0.5}", "y = Mul(h, s)"));
  CHECK(LowerProto(proto).graph.constants().parameter_gradients == Bytes(kVector + 4));
  proto.mutable_graph()->mutable_initializer(1)->set_name("345");
  proto.mutable_graph()->mutable_node(1)->set_input(1, "345");
  CHECK(LowerProto(proto).graph.constants().parameter_gradients == Bytes(kVector));
}

TEST_CASE("trained scalars: bounds, and numbers in Constant nodes, are not trained") {
  CHECK(GradientsOf(WithScalar("float low = {-1.0}, float high = {1.0}",
                               "y = Clip(h, low, high)")) == Bytes(kVector));
  CHECK(GradientsOf("g (float[2,3] x) => (float[2,3] y) <float[3] w = {1,2,3}> "
                    "{ h = Mul(x, w) c = Constant<value = float[1] {0.5}>() y = Mul(h, c) }") ==
        Bytes(kVector));
}

TEST_CASE("trained scalars: operators that apply weights train one element of any name") {
  CHECK(GradientsOf("g (float[2,3] x) => (float[2,3] y) <float[1] val_5 = {0.5}> "
                    "{ y = PRelu(x, val_5) }") == Bytes(4));
}

TEST_CASE("trained scalars: a scalar in a weight's own arithmetic is trained, a number is not") {
  const auto graph = [](const std::string& name) {
    return "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}, float[1,1] " + name +
           " = {0.5}> { n = ReduceL2(w) d = Div(w, n) v = Mul(d, " + name + ") y = MatMul(x, v) }";
  };
  CHECK(GradientsOf(graph("g_norm")) == Bytes(16 + 4));
  CHECK(GradientsOf(graph("val_3")) == Bytes(16));
  CHECK(LowerText(graph("val_3")).graph.constants().parameters == Bytes(16 + 4));
}

// Layers of ReZero: y = y + alpha relu(W y), with an alpha of one element or for each channel.
TEST_CASE("trained scalars: residual gates save what gates of whole vectors save") {
  const auto saved = [](const std::string& alpha) {
    const TensorGraph graph =
        LowerText(
            "g (float[N,2] y0) => (float[N,2] y2) <float[2,2] w0 = {1,2,3,4}, float[2,2] w1 "
            "= {1,2,3,4}, " +
                alpha +
                "> { m0 = MatMul(y0, w0) r0 = Relu(m0) s0 = Mul(r0, a0) y1 = Add(y0, s0) "
                "m1 = MatMul(y1, w1) r1 = Relu(m1) s1 = Mul(r1, a1) y2 = Add(y1, s1) }",
            BatchOf(8))
            .graph;
    std::string reads;
    for (const Node& node : graph.nodes()) reads += NamesOf(graph, node.backward_reads) + "; ";
    return reads;
  };
  CHECK(saved("float[1] a0 = {1}, float[1] a1 = {1}") == "y0; r0; r0; ; y1; r1; r1; ; ");
  CHECK(saved("float[2] a0 = {1,1}, float[2] a1 = {1,1}") == "y0; r0; r0; ; y1; r1; r1; ; ");
}

}  // namespace
}  // namespace ckplan
