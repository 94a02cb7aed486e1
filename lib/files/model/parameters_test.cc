#include "lib/files/model/parameters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/files/model/step_graph.h"
#include "lib/files/model/testing/models.h"
#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

using Kind = Parameter::Kind;

struct Listed {
  ModelGraph graph;
  std::string text;  // For example "w trained 16 bytes, 4 in 4 rows, read by MatMul Add; ...".
};

Listed List(const std::string& graph, const LoadOptions& options = {}) {
  const Model model = LoadProto(ParseGraph(graph), options).value();
  LowerOptions lower;
  lower.cost = ParseCostModel("flops").value();
  lower.lists_parameters = true;
  Listed listed{LowerModel(model, lower).value(), ""};
  for (const Parameter& parameter : listed.graph.parameters) {
    constexpr const char* kKinds[] = {"trained", "frozen", "buffer"};
    listed.text += parameter.name + " " + kKinds[static_cast<size_t>(parameter.kind)] + " " +
                   std::to_string(parameter.bytes.count()) + " bytes, " +
                   std::to_string(parameter.elements) + " in " + std::to_string(parameter.rows) +
                   " rows, read by";
    for (const NodeId reader : parameter.readers) {
      listed.text += " " + listed.graph.graph.node(reader).op;
    }
    listed.text += "; ";
  }
  return listed;
}

constexpr const char* kTrainedNet =
    "g (float[8,4] x) => (float[8,2] y) <float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, "
    "float[4] bias = {1,2,3,4}, float[2,4] head = {1,2,3,4,5,6,7,8}> "
    "{ a = MatMul(x, w) b = Add(a, bias) c = MatMul(b, w) t = Transpose(head) y = MatMul(c, t) }";

TEST_CASE("parameters: each with its size and the nodes that read it or values made from it") {
  CHECK(List(kTrainedNet).text ==
        "w trained 64 bytes, 16 in 4 rows, read by MatMul MatMul; "
        "bias trained 16 bytes, 4 in 4 rows, read by Add; "
        "head trained 32 bytes, 8 in 2 rows, read by MatMul; ");
}

TEST_CASE("parameters: frozen parameters and buffers are distinguished") {
  LoadOptions options;
  options.freeze = {"w"};
  CHECK(List(kTrainedNet, options).text.starts_with("w frozen 64 bytes"));
  const Listed norm = List(
      "g (float[2,2,4,4] x) => (float[2,2,4,4] y) <float[2] s = {1,1}, float[2] b = {0,0}, "
      "float[2] m = {0,0}, float[2] v = {1,1}> { y = BatchNormalization(x, s, b, m, v) }");
  CHECK(norm.text ==
        "s trained 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "b trained 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "m buffer 8 bytes, 2 in 2 rows, read by BatchNormalization; "
        "v buffer 8 bytes, 2 in 2 rows, read by BatchNormalization; ");
}

TEST_CASE("parameters: the graph has the sizes and types of those that are trained") {
  CHECK(List(kTrainedNet).graph.graph.optimized().tensors ==
        std::vector<OptimizedTensors>{{4, 4, 1}, {8, 4, 1}, {16, 4, 1}});
  LoadOptions options;
  options.freeze = {"w"};
  CHECK(List(kTrainedNet, options).graph.graph.optimized().tensors ==
        std::vector<OptimizedTensors>{{4, 4, 1}, {8, 4, 1}});
  constexpr const char* kHalf =
      "g (float16[2,4] x) => (float16[2,4] y) <float16[4,4] w = [\"location\": \"none\"], "
      "float16[4,4] v = [\"location\": \"none\"]> { a = MatMul(x, w) y = MatMul(a, v) }";
  CHECK(List(kHalf).graph.graph.optimized().tensors == std::vector<OptimizedTensors>{{16, 2, 2}});
  // Stored activations change nothing about parameters.
  options.freeze = {};
  options.activation_type = ActivationType::kFloat32;
  CHECK(List(kHalf, options).graph.graph.optimized().tensors ==
        std::vector<OptimizedTensors>{{16, 2, 2}});
}

TEST_CASE("parameters: their bytes are those that the graph counts, for every model") {
  for (const char* const name : {"resnet18", "gpt2_small", "squeezenet1_1"}) {
    CAPTURE(name);
    LoadOptions load;
    const std::string path = std::string("testdata/models/") + name + ".onnx";
    load.dims = {{"N", 2}};
    Result<Model> model = LoadModel(path, load);
    if (!model.ok()) {
      load.dims = {{"N", 2}, {"T", 8}};
      model = LoadModel(path, load);
    }
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    LowerOptions lower;
    lower.cost = ParseCostModel("flops").value();
    CHECK(LowerModel(*model, lower).value().parameters.empty());
    lower.lists_parameters = true;
    const ModelGraph lowered = LowerModel(*model, lower).value();
    Bytes all, trained;
    std::vector<OptimizedTensors> tensors;
    for (const Parameter& parameter : lowered.parameters) {
      all += parameter.bytes;
      if (parameter.kind == Kind::kTrained) {
        trained += parameter.bytes;
        tensors.push_back(parameter.AsOptimized());
      }
      CHECK_FALSE(parameter.readers.empty());
      CHECK(std::is_sorted(parameter.readers.begin(), parameter.readers.end()));
    }
    CHECK(all == lowered.graph.constants().parameters);
    CHECK(trained == lowered.graph.constants().parameter_gradients);
    CHECK(lowered.graph.optimized().bytes == trained);
    CHECK(lowered.graph.optimized().tensors == Merged(tensors));
  }
}

}  // namespace

// Tests which initializers of one element are trained, and which are numbers of the program.

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

// Tests what a frozen parameter saves: gradients, values that only they read, and whole backward
// steps.

namespace {

// A linear layer of width 4, LoRA's two layers of rank 1 in parallel, and a head.
constexpr const char* kLora =
    "g (float[8,4] x) => (float[8,2] y) <float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, "
    "float[4] bias = {1,2,3,4}, float[4,1] lora_a = {1,2,3,4}, float[1,4] lora_b = {1,2,3,4}, "
    "float[4,2] head = {1,2,3,4,5,6,7,8}> "
    "{ base = MatMul(x, w) plain = Add(base, bias) low = MatMul(x, lora_a) "
    "high = MatMul(low, lora_b) sum = Add(plain, high) h = Relu(sum) y = MatMul(h, head) }";

LoadOptions Freezing(NamePatterns patterns) {
  LoadOptions options;
  options.freeze = std::move(patterns);
  return options;
}

ModelGraph Frozen(const std::string& graph, NamePatterns patterns) {
  return LowerText(graph, Freezing(std::move(patterns)));
}

const Node& ProducerOf(const TensorGraph& graph, const std::string& tensor) {
  for (const Tensor& one : graph.tensors()) {
    if (one.name == tensor) return graph.node(one.producer);
  }
  FAIL("no tensor " << tensor);
  return *graph.nodes().begin();
}

std::string ReadsOf(const TensorGraph& graph, const std::string& tensor) {
  return NamesOf(graph, ProducerOf(graph, tensor).backward_reads);
}

TEST_CASE("freeze: a frozen parameter counts, without a gradient") {
  const ConstantMemory all = Frozen(kLora, {}).graph.constants();
  const ConstantMemory frozen = Frozen(kLora, {"!lora*"}).graph.constants();
  CHECK(frozen.parameters == all.parameters);
  CHECK(all.parameter_gradients == all.parameters);
  CHECK(frozen.parameter_gradients == Bytes((4 + 4) * 4));
  CHECK(Frozen(kLora, {"w"}).graph.constants().parameter_gradients ==
        all.parameters - Bytes(16 * 4));
  CHECK(Frozen(kLora, {"*", "!head"}).graph.constants().parameter_gradients == Bytes(8 * 4));
}

TEST_CASE("freeze: values that only a frozen parameter's gradient reads are not saved") {
  const TensorGraph all = Frozen(kLora, {}).graph;
  CHECK(ReadsOf(all, "base") == "x");
  CHECK(ReadsOf(all, "y") == "h");
  const TensorGraph lora = Frozen(kLora, {"!lora*"}).graph;
  CHECK(ReadsOf(lora, "base").empty());
  CHECK(ReadsOf(lora, "low") == "x");
  CHECK(ReadsOf(lora, "high") == "low");
  CHECK(ReadsOf(lora, "h") == "h");
  CHECK(ReadsOf(lora, "y").empty());  // Its gradient needs only head.
  CHECK(ProducerOf(lora, "base").backward_cost == Cost(0));
  CHECK(ProducerOf(lora, "plain").backward_cost == Cost(0));
  CHECK(lora.backward_cost() < all.backward_cost());
  CHECK(lora.forward_cost() == all.forward_cost());
}

TEST_CASE("freeze: a tensor has no gradient if nothing before it is trained") {
  const TensorGraph graph = Frozen(kLora, {"*", "!head"}).graph;
  for (const Tensor& tensor : graph.tensors()) {
    CAPTURE(tensor.name);
    CHECK(tensor.requires_grad == (tensor.name == "y"));
  }
  CHECK(ReadsOf(graph, "h").empty());
  CHECK(ReadsOf(graph, "y") == "h");
}

TEST_CASE("freeze: statistics of a frozen normalisation are saved for its input's gradient alone") {
  const std::string graph =
      "g (float[2,3,4,4] x) => (float[2,3,4,4] y) <float[3,1,1] w = {1,2,3}, float[3] scale = "
      "{1,1,1}, "
      "float[3] shift = {0,0,0}, float[3] mean = {0,0,0}, float[3] var = {1,1,1}> "
      "{ h = Mul(x, w) y = BatchNormalization(h, scale, shift, mean, var) }";
  const TensorGraph within = Frozen(graph, {"scale", "shift"}).graph;
  CHECK(ReadsOf(within, "y") == ReadsOf(Frozen(graph, {}).graph, "y"));
  CHECK(within.constants().parameters == Bytes(5 * 3 * 4));
  const TensorGraph none = Frozen(graph, {"*"}).graph;
  CHECK(ProducerOf(none, "y").outputs.size() == 1);
  CHECK(ReadsOf(none, "y").empty());
}

TEST_CASE("freeze: weights that old exporters write as Constants are frozen, and still count") {
  const std::string graph =
      "g (float[8,4] x) => (float[8,2] y) { w = Constant<value = float[4,2] {1,2,3,4,5,6,7,8}>() "
      "v = Constant<value = float[2] {1,2}>() h = MatMul(x, w) y = Mul(h, v) }";
  const TensorGraph all = Frozen(graph, {}).graph;
  const TensorGraph frozen = Frozen(graph, {"w"}).graph;
  CHECK(frozen.constants().parameters == all.constants().parameters);
  CHECK(frozen.constants().parameter_gradients == Bytes(2 * 4));
  CHECK_FALSE(ProducerOf(frozen, "h").outputs.empty());
  CHECK(ReadsOf(frozen, "h").empty());
}

TEST_CASE("freeze: LoRA that is merged into its weight trains only what is not frozen") {
  const std::string graph =
      "g (float[8,4] x) => (float[8,4] y) <float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, "
      "float[4,1] a = {1,2,3,4}, float[1,4] b = {1,2,3,4}> "
      "{ t = Transpose<perm = [1,0]>(w) ab = MatMul(a, b) sum = Add(t, ab) y = MatMul(x, sum) }";
  const Model model = LoadText(graph, Freezing({"w"})).value();
  LowerOptions lower;
  lower.cost = ParseCostModel("flops").value();
  const ModelGraph lowered = LowerModel(model, lower).value();
  CHECK(lowered.graph.constants().parameters == Bytes((16 + 4 + 4) * 4));
  CHECK(lowered.graph.constants().parameter_gradients == Bytes((4 + 4) * 4));
  CHECK(ReadsOf(lowered.graph, "y") == "x");
  const StepGraph step = BuildStepGraph(model, lowered).value();
  std::string trained;
  for (const StepConstant& constant : step.constants) {
    if (constant.is_trained) trained += constant.name + " ";
    if (constant.name == "w" || constant.name == "t") CHECK_FALSE(constant.has_gradient);
  }
  CHECK(trained == "a b ");
}

TEST_CASE("freeze: a pattern that fits no trained parameter, and a model that trains nothing") {
  const Result<Model> model = LoadText(kLora, Freezing({"lora_c"}));
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().code == ErrorCode::kUsage);
  CHECK(model.error().message.find("no trained parameter is called \"lora_c\"; did you mean "
                                   "\"lora_a\"?") != std::string::npos);
  const ModelGraph nothing = Frozen(kLora, {"*"});
  REQUIRE(nothing.warnings.size() == 1);
  CHECK(nothing.warnings[0].find("all parameters are frozen") != std::string::npos);
}

}  // namespace

}  // namespace ckplan
