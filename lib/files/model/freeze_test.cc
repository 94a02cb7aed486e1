// Tests what a frozen parameter saves: gradients, values that only they read, and whole backward
// steps.
#include "lib/files/model/step_graph.h"
#include "lib/files/model/testing.h"

namespace ckplan {
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

const Node& MakerOf(const TensorGraph& graph, const std::string& tensor) {
  for (const Tensor& one : graph.tensors()) {
    if (one.name == tensor) return graph.node(one.producer);
  }
  FAIL("no tensor " << tensor);
  return *graph.nodes().begin();
}

std::string ReadsOf(const TensorGraph& graph, const std::string& tensor) {
  return NamesOf(graph, MakerOf(graph, tensor).backward_reads);
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
  CHECK(MakerOf(lora, "base").backward_cost == Cost(0));
  CHECK(MakerOf(lora, "plain").backward_cost == Cost(0));
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
  CHECK(MakerOf(none, "y").outputs.size() == 1);
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
  CHECK_FALSE(MakerOf(frozen, "h").outputs.empty());
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
