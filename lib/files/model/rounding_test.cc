// Tests straight-through estimation: where rounding passes gradients on, and where it ends them.
#include <algorithm>

#include "lib/files/model/testing_proto.h"

namespace ckplan {
namespace {

ModelGraph Lowered(const std::string& graph, Rounding rounding = Rounding::kStraightThrough,
                   Autograd autograd = Autograd::kMinimal) {
  LoadOptions options;
  options.rounding = rounding;
  return LowerProto(ParseGraph(graph, 21), options, autograd);
}

Bytes GradientsOf(const ModelGraph& lowered) {
  return lowered.graph.constants().parameter_gradients;
}

bool Notes(const ModelGraph& lowered, const std::string& part) {
  return std::any_of(lowered.warnings.begin(), lowered.warnings.end(),
                     [&part](const std::string& warning) {
                       return warning.find("straight through rounding") != std::string::npos &&
                              warning.find(part) != std::string::npos;
                     });
}

const std::string kHead = "g (float[4,2] x) => (float[4,2] y) <float[2,2] w = {1,2,3,4}, ";

TEST_CASE("rounding: the weights of a quantized network are trained") {
  for (const char* const rounds :
       {"r = Round(w)", "r = Sign(w)", "r = Floor(w)", "r = Ceil(w)",
        "d = Div(w, s) q = Round(d) r = Mul(q, s)",
        "d = Div(w, s) q = Round(d) c = Clip(q) i = Cast<to = 3>(c) f = Cast<to = 1>(i) "
        "r = Mul(f, s)",
        "q = QuantizeLinear(w, s, z) r = DequantizeLinear(q, s, z)",
        "q = QuantizeLinear(w, s, z) t = Transpose(q) r = DequantizeLinear(t, s, z)"}) {
    CAPTURE(rounds);
    const std::string graph =
        kHead + "float s = {0.5}, int8 z = {0}> { " + rounds + " h = MatMul(x, r) y = Relu(h) }";
    const ModelGraph lowered = Lowered(graph);
    const bool trains_scale = std::string(rounds).find("Mul(") != std::string::npos;
    CHECK(GradientsOf(lowered) == Bytes(16 + (trains_scale ? 4 : 0)));
    CHECK(Notes(lowered, "--rounding no-gradient"));
    CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "MatMul").backward_reads) == "x");
    const ModelGraph ended = Lowered(graph, Rounding::kNoGradient);
    CHECK(GradientsOf(ended) == Bytes(trains_scale ? 4 : 0));
    CHECK_FALSE(Notes(ended, ""));
  }
}

TEST_CASE("rounding: what lies before a rounded activation is trained and saved") {
  for (const char* const rounds :
       {"r = Round(a)", "r = Sign(a)", "q = QuantizeLinear(a, s, z) r = DequantizeLinear(q, s, z)",
        "q = QuantizeLinear(a, s, z) t = Reshape(q, shape) r = DequantizeLinear(t, s, z)",
        "q, scale, zero = DynamicQuantizeLinear(a) r = DequantizeLinear(q, scale, zero)",
        "i = Cast<to = 3>(a) r = Cast<to = 1>(i)"}) {
    CAPTURE(rounds);
    for (const Autograd autograd : {Autograd::kMinimal, Autograd::kTorch}) {
      const std::string graph =
          kHead +
          "float[2,2] w2 = {1,2,3,4}, float s = {0.5}, uint8 z = {0}, int64[2] shape = "
          "{4,2}> { m = MatMul(x, w) a = Sigmoid(m) " +
          rounds + " y = MatMul(r, w2) }";
      const ModelGraph lowered = Lowered(graph, Rounding::kStraightThrough, autograd);
      CHECK(GradientsOf(lowered) == Bytes(2 * 16));
      CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "Sigmoid").backward_reads) == "a");
      CHECK(Notes(lowered, "\""));
      const ModelGraph ended = Lowered(graph, Rounding::kNoGradient, autograd);
      // PyTorch's round() and sign() send zeros to w; integers send nothing.
      const bool sends_zeros = std::string(rounds).starts_with("r = ");
      CHECK(GradientsOf(ended) == Bytes(sends_zeros ? 2 * 16 : 16));
      CHECK(ended.graph.tensor(ended.graph.outputs()[0]).requires_grad);
      CHECK_FALSE(Notes(ended, ""));
    }
  }
}

TEST_CASE(
    "rounding: the gradient of quantized integers is that of the floats that they stand for") {
  const ModelGraph lowered =
      Lowered(kHead +
              "float s = {0.5}, uint8 z = {0}> { m = MatMul(x, w) q = QuantizeLinear(m, s, z) "
              "y = DequantizeLinear(q, s, z) }");
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "QuantizeLinear").gradient_passthrough) ==
        "m");
  CHECK(NamesOf(lowered.graph, NodeOf(lowered.graph, "DequantizeLinear").gradient_passthrough) ==
        "q");
}

// The exporter drops the detach of x + (q - x).detach(), of which nothing is saved.
TEST_CASE("rounding: an estimate that is detached saves nothing, and needs no note") {
  for (const char* const estimate : {"d = Sub(q, a) r = Add(a, d)", "d = Sub(q, a) r = Add(d, a)",
                                     "d = Sub(a, q) r = Sub(a, d)"}) {
    CAPTURE(estimate);
    const std::string graph =
        kHead +
        "float[2,2] w2 = {1,2,3,4}> { a = MatMul(x, w) m = Abs(a) t = ReduceMax(m) "
        "e = Div(a, t) u = Round(e) q = Mul(u, t) " +
        estimate + " y = MatMul(r, w2) }";
    const ModelGraph lowered = Lowered(graph);
    CHECK(GradientsOf(lowered) == Bytes(2 * 16));
    CHECK_FALSE(Notes(lowered, ""));
    for (const char* const op : {"Abs", "ReduceMax", "Div", "Round", "Mul"}) {
      CAPTURE(op);
      CHECK(NodeOf(lowered.graph, op).backward_reads.empty());
      CHECK_FALSE(lowered.graph.tensor(NodeOf(lowered.graph, op).outputs[0]).requires_grad);
    }
  }
}

TEST_CASE("rounding: what nothing trains, and what no gradient reaches, needs no note") {
  CHECK_FALSE(Notes(Lowered(kHead + "float s = {1}> { r = Round(x) y = MatMul(r, w) }"), ""));
  CHECK_FALSE(Notes(Lowered("g (float[4,2] x) => (float[4,2] y) <float[2,2] w = {1,2,3,4}> "
                            "{ m = MatMul(x, w) r = Floor(m) i = Cast<to = 7>(r) "
                            "e = Greater(r, x) y = Where(e, m, x) }"),
                    ""));
}

}  // namespace
}  // namespace ckplan
