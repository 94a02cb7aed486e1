// Tests that a step ends at the planned outputs, and that nothing else refuses a model.
#include <algorithm>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

ModelGraph Lowered(const Model& model) {
  LowerOptions options;
  options.cost = ParseCostModel("flops").value();
  Result<ModelGraph> lowered = LowerModel(model, options);
  REQUIRE_MESSAGE(lowered.ok(), lowered.error().message);
  return std::move(lowered).value();
}

LoadOptions EndingAt(NamePatterns outputs) {
  LoadOptions options = BatchOf(4);
  options.outputs = std::move(outputs);
  return options;
}

// A linear layer whose result goes into an ArgMax, a TopK and an unknown operator.
constexpr const char* kHead =
    "h (float[N,16] x, float[N,4] side) => (int64[N,1] best, float[K] strange) <float[16,8] w, "
    "float[8] b> { l = MatMul(x, w) z = Add(l, b) best = ArgMax<axis = 1>(z) "
    "strange = acme.Guess(z, side) }";

onnx::ModelProto WithWeights(const std::string& graph) {
  std::string text = graph;
  const auto fill = [&](const std::string& name, const std::string& dims, int count) {
    const size_t at = text.find("float[" + dims + "] " + name);
    if (at == std::string::npos) return;
    std::string list = " = {1";
    for (int i = 1; i < count; ++i) list += ",1";
    text.insert(at + 7 + dims.size() + name.size() + 1, list + "}");
  };
  fill("w", "16,8", 128);
  fill("b", "8", 8);
  onnx::ModelProto proto = ParseGraph(text);
  for (auto& node : *proto.mutable_graph()->mutable_node()) {
    if (node.op_type() == "Guess") node.set_domain("acme");
  }
  return proto;
}

std::string TensorNames(const ModelGraph& lowered) {
  std::string names;
  for (const Tensor& tensor : lowered.graph.tensors()) {
    names += (names.empty() ? "" : " ") + tensor.name;
  }
  return names;
}

bool Mentions(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != text.npos; });
}

TEST_CASE("outputs: the step ends at a tensor, a node or what a pattern chooses") {
  for (const NamePatterns& patterns :
       {NamePatterns{"z"}, NamePatterns{"Add:z"}, NamePatterns{"op:Add"}}) {
    const Result<Model> model = LoadProto(WithWeights(kHead), EndingAt(patterns));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    const ModelGraph lowered = Lowered(*model);
    CHECK(TensorNames(lowered) == "x l z");
    CHECK(Mentions(model->warnings(), "left out: outputs \"best\", \"strange\", with 2 nodes"));
  }
  CHECK(TensorNames(LowerProto(WithWeights(kHead), EndingAt({"l"}))) == "x l");
  CheckFails(LoadProto(WithWeights(kHead), EndingAt({"logits"})), ErrorCode::kUsage,
             "no tensor or node is called \"logits\"");
}

TEST_CASE("outputs: an output behind an unknown operator is left out, if another can be trained") {
  onnx::ModelProto proto = WithWeights(kHead);
  auto& output = *proto.mutable_graph()->add_output();
  output.set_name("z");
  const Result<Model> model = LoadProto(proto, BatchOf(4));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(TensorNames(Lowered(*model)) == "x l z");
  CHECK(Mentions(model->warnings(), "cannot be trained: outputs \"best\", \"strange\""));
}

// Exporters read boxes as they are, and as views before NMS.
TEST_CASE("outputs: a view of a place to end is not named beside it") {
  const Result<Model> model = LoadProto(
      WithWeights("h (float[N,16] x) => (float[K] strange) <float[16,8] w, int64[1] "
                  "first = {0}> { l = MatMul(x, w) u = Unsqueeze(l, first) c = Cast<to = 1>(u) "
                  "r = Relu(l) strange = acme.Guess(c, l, r) }"),
      BatchOf(4));
  REQUIRE_FALSE(model.ok());
  REQUIRE(model.error().remedy.settings.size() == 1);
  CHECK(model.error().remedy.settings[0].value == "l,r");
}

TEST_CASE("outputs: a model without a trainable output is refused, and the place to end is named") {
  const Result<Model> model = LoadProto(WithWeights(kHead), BatchOf(4));
  CheckFails(model, ErrorCode::kInvalidInput, "Guess of acme");
  REQUIRE(model.error().remedy.settings.size() == 1);
  CHECK(model.error().remedy.settings[0].name == "outputs");
  CHECK(model.error().remedy.settings[0].value == "z");
}

TEST_CASE("outputs: the place to end has its name in the main graph") {
  for (
      const char* last :
      {"e = com.microsoft.BiasGelu(z, b)", "e = Relu(z)",
       "e = If(deep) <then_branch = t () => (float[] r) { q = Relu(z) r = Relu(q) }, else_branch = "
       "f () => (float[] s) { s = Relu(z) }>",
       "e = If(deep) <then_branch = t () => (float[] r) { q = Relu(z) r = Relu(q) }, else_branch = "
       "f () => (float[] s) { s = com.microsoft.QuickGelu(z) }>"}) {
    CAPTURE(last);
    const Result<Model> model = LoadProto(
        WithWeights("h (float[N,16] x, bool deep) => (int64[N,1] best) <float[16,8] w, float[8] b> "
                    "{ l = MatMul(x, w) z = Add(l, b) " +
                    std::string(last) + " best = ArgMax<axis = 1>(e) }"),
        BatchOf(4));
    REQUIRE(model.ok());
    LowerOptions options;
    options.cost = ParseCostModel("flops").value();
    const Result<ModelGraph> lowered = LowerModel(*model, options);
    REQUIRE_FALSE(lowered.ok());
    REQUIRE(lowered.error().remedy.settings.size() == 1);
    CHECK(lowered.error().remedy.settings[0].value == "e");
  }
}

TEST_CASE(
    "outputs: a float that no gradient leaves is left out, or refused if it is the only one") {
  const auto with = [](const std::string& outputs, const std::string& nodes) {
    return WithWeights("h (float[N,16] x) => (" + outputs +
                       ") <float[16,8] w, float[8] b> { l = "
                       "MatMul(x, w) z = Add(l, b) best = ArgMax<axis = 1>(z) " +
                       nodes + " }");
  };
  struct Row {
    const char* nodes;
    const char* tensors;
  };
  for (const Row& row :
       {Row{"c = Cast<to = 1>(best)", "x l z"},
        Row{"t = Constant<value_float = 0.5>() g = Greater(z, t) c = Cast<to = 1>(g)", "x l z"},
        Row{"d = Constant<value_int = 8>() v = Constant<value_floats = [0.0, 1.0]>() c = "
            "OneHot(best, d, v)",
            "x l z"},
        Row{"f = Cast<to = 1>(best) h = Constant<value_float = 0.5>() c = Mul(f, h)", "x l z"},
        // These could be trained.
        Row{"c = Relu(x)", "x l z c"}, Row{"c = Floor(z)", "x l z c"},
        Row{"c = Gather(w, best)", "x l z best c"}}) {
    CAPTURE(row.nodes);
    const Result<Model> model = LoadProto(with("float[N,8] z, float[] c", row.nodes), BatchOf(4));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    CHECK(TensorNames(Lowered(*model)) == row.tensors);
    const bool is_left_out = std::string(row.tensors) == "x l z";
    CHECK(Mentions(model->warnings(), "cannot be trained: output \"c\", with") == is_left_out);
  }
  const onnx::ModelProto alone = with("float[N,1] c", "c = Cast<to = 1>(best)");
  const Result<Model> refused = LoadProto(alone, BatchOf(4));
  CheckFails(refused, ErrorCode::kInvalidInput,
             "nothing can be trained, since no gradient leaves \"c\"");
  REQUIRE(refused.error().remedy.settings.size() == 1);
  CHECK(refused.error().remedy.settings[0].value == "z");
  CheckFails(
      LoadProto(with("float[N,8] z, float[N,1] c", "c = Cast<to = 1>(best)"), EndingAt({"c"})),
      ErrorCode::kInvalidInput, "no gradient leaves \"c\"");
  // What is asked for beside an output that can be trained is a part of the step.
  CHECK(TensorNames(LowerProto(with("float[N,8] z, float[N,1] c", "c = Cast<to = 1>(best)"),
                               EndingAt({"z", "c"}))) == "x l z best c");
}

TEST_CASE("outputs: the place to end has a pattern that chooses it alone") {
  struct Row {
    const char* name;
    const char* node;  // Of the value.
    const char* pattern;
  };
  for (const Row& row : {Row{"a,b", "add", "a?b"}, Row{"!z", "add", "?z"}, Row{"@z", "add", "?z"},
                         Row{"op:z", "add", "?p:z"}, Row{"a\nb", "add", "a?b"},
                         Row{"l,", "add", "l?"}, Row{"z*", "add", "z*"}, Row{",", "add", "add"}}) {
    CAPTURE(row.name);
    onnx::ModelProto proto = WithWeights(kHead);
    for (auto& node : *proto.mutable_graph()->mutable_node()) {
      for (auto& input : *node.mutable_input()) input = input == "z" ? row.name : input;
      for (auto& output : *node.mutable_output()) output = output == "z" ? row.name : output;
      if (node.op_type() == "Add") node.set_name(row.node);
    }
    const Result<Model> refused = LoadProto(proto, BatchOf(4));
    REQUIRE_FALSE(refused.ok());
    REQUIRE(refused.error().remedy.settings.size() == 1);
    CHECK(refused.error().remedy.settings[0].value == row.pattern);
    const Result<Model> model = LoadProto(proto, EndingAt({row.pattern}));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    CHECK(Lowered(*model).graph.outputs().size() == 1);
  }
}

TEST_CASE("outputs: patterns that choose nothing are refused") {
  for (const NamePatterns& patterns :
       {NamePatterns{"z", "!z"}, NamePatterns{"*", "!*"}, NamePatterns{"!*"}}) {
    CheckFails(LoadProto(WithWeights(kHead), EndingAt(patterns)), ErrorCode::kUsage,
               "chooses nothing");
  }
}

TEST_CASE("outputs: what is chosen and can't be planned is excluded by the remedy") {
  for (const NamePatterns& patterns : {NamePatterns{"*"}, NamePatterns{"z", "strange", "best"}}) {
    const Result<Model> refused = LoadProto(WithWeights(kHead), EndingAt(patterns));
    REQUIRE_FALSE(refused.ok());
    CAPTURE(refused.error().message);
    REQUIRE(refused.error().remedy.settings.size() == 1);
    const std::string& value = refused.error().remedy.settings[0].value;
    CHECK(value.find(",!best,!strange") != value.npos);
    NamePatterns better = patterns;
    better.insert(better.end(), {"!best", "!strange"});
    CHECK(LoadProto(WithWeights(kHead), EndingAt(better)).ok());
  }
}

TEST_CASE("outputs: inputs, dimensions and contradictions of what is left out count for nothing") {
  // `side` has an open dimension M, and the Reshape contradicts its input.
  const std::string graph =
      "h (float[N,16] x, float[M,4] side, string[3] t) => (float[N,8] l, float[M,9] r, string[3] "
      "u) "
      "<float[16,8] w, int64[2] s = {7,9}> "
      "{ l = MatMul(x, w) r = Reshape(side, s) u = Identity(t) }";
  const Result<Model> model = LoadProto(WithWeights(graph), EndingAt({"l"}));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(Lowered(*model).graph.constants().inputs == Bytes(4 * 16 * 4));
}

TEST_CASE("outputs: they are left out with another batch as well") {
  const std::string graph =
      "h (float[1,16] x) => (float[1,8] l, int64[2,K] where, float[K,8] kept) <float[16,8] w, "
      "float "
      "zero = {0}> { l = MatMul(x, w) g = Greater(l, zero) where = NonZero(g) kept = GatherND(l, "
      "where) }";
  LoadOptions options;
  options.batch = 8;
  for (const int64_t batch : {0, 1, 8}) {
    options.batch = batch;
    const Result<Model> model = LoadProto(WithWeights(graph), options);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    CHECK(Lowered(*model).graph.constants().inputs == Bytes(std::max<int64_t>(batch, 1) * 64));
  }
}

TEST_CASE("outputs: a contradiction that leads to no output refuses nothing") {
  CHECK(LoadText("g (float[4,16] x, float[12,8] w) => (float[4,16] y) "
                 "{ y = Relu(x) z = MatMul(x, w) }")
            .ok());
  CheckFails(LoadText("g (float[4,16] x, float[12,8] w) => (float[4,16] y, float[4,8] z) "
                      "{ y = Relu(x) z = MatMul(x, w) }"),
             ErrorCode::kInvalidInput, "(MatMul)");
}

TEST_CASE("outputs: a branch that reads a value keeps what makes it") {
  const std::string graph =
      "h (float[N,16] x) => (float[N,8] y, int64[N,1] best) <float[16,8] w, bool c = {1}> "
      "{ l = MatMul(x, w) y = If(c) <then_branch = t () => (float[N,8] a) { a = Relu(l) }, "
      "else_branch = e () => (float[N,8] b) { b = Neg(l) }> best = ArgMax<axis = 1>(l) }";
  CHECK(TensorNames(LowerProto(WithWeights(graph), EndingAt({"y"}))) == "x l If:y/a");
}

}  // namespace
}  // namespace ckplan
