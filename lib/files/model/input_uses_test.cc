// Tests of inputs that are parameters, and of inputs whose contents are known.
#include <fmt/format.h>

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

constexpr const char* kTrainedInputs =
    "g (float[N,4] x, float[4,8] w, float[8] b) => (float[N,8] y) "
    "{ l = MatMul(x, w) y = Add(l, b) }";

LoadOptions Weights(NamePatterns weights) {
  LoadOptions options = BatchOf(2);
  options.weights = std::move(weights);
  return options;
}

LoadOptions Set(std::vector<std::string> inputs) {
  LoadOptions options = BatchOf(2);
  options.set_inputs = std::move(inputs);
  return options;
}

TEST_CASE("weights: inputs that are parameters are trained, and no part of the batch") {
  const ConstantMemory none = LowerText(kTrainedInputs, BatchOf(2)).graph.constants();
  CHECK(none.parameter_gradients == Bytes(0));
  CHECK(none.inputs == Bytes((8 + 32 + 8) * 4));
  const ConstantMemory both = LowerText(kTrainedInputs, Weights({"w", "b"})).graph.constants();
  CHECK(both.parameters == Bytes((32 + 8) * 4));
  CHECK(both.parameter_gradients == both.parameters);
  CHECK(both.inputs == Bytes(8 * 4));
  const ConstantMemory rest = LowerText(kTrainedInputs, Weights({"!x"})).graph.constants();
  CHECK(rest.parameters == both.parameters);
  LoadOptions frozen = Weights({"!x"});
  frozen.freeze = {"w"};
  CHECK(LowerText(kTrainedInputs, frozen).graph.constants().parameter_gradients == Bytes(8 * 4));
}

TEST_CASE("weights: an input that doesn't exist, or is text, is refused") {
  CheckFails(LoadText(kTrainedInputs, Weights({"v"})), ErrorCode::kUsage,
             "no input is called \"v\"");
  CheckFails(LoadText("g (string[2] t) => (float[2] y) { y = Cast<to = 1>(t) }",
                      [] {
                        LoadOptions options;
                        options.weights = {"t"};
                        return options;
                      }()),
             ErrorCode::kUsage, "input \"t\" holds no numbers");
}

constexpr const char* kShaped =
    "g (float[N,12] x, int64[K] shape) => (float[a,b,c] y) { r = Reshape(x, shape) y = Relu(r) }";

TEST_CASE("set: contents decide shapes") {
  const TensorGraph graph = LowerText(kShaped, Set({"shape=[2,3,4]"})).graph;
  CHECK(graph.tensors().size() == 2);
  CHECK_FALSE(LoadText(kShaped, BatchOf(2)).ok());
  CheckFails(LoadText(kShaped, Set({"shape=[2,3,5]"})), ErrorCode::kInvalidInput, "");
}

constexpr const char* kBranches =
    "g (float[N,4] x, bool[1] deep) => (float[N,4] y) <float[4,4] w = "
    "{1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}> { y = If(deep) <then_branch = t () => (float[N,4] a) { h "
    "= MatMul(x, w) a = MatMul(h, w) }, else_branch = e () => (float[N,4] b) { b = MatMul(x, w) }> "
    "}";

TEST_CASE("set: contents decide branches; else the costlier one is planned, with a note") {
  CHECK(LowerText(kBranches, Set({"deep=true"})).graph.nodes().size() == 2);
  CHECK(LowerText(kBranches, Set({"deep=[false]"})).graph.nodes().size() == 1);
  const Result<Model> model = LoadText(kBranches, BatchOf(2));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(Lowered(*model).graph.nodes().size() == 2);
  REQUIRE(model->warnings().size() == 1);
  CHECK(model->warnings()[0].find("is planned with its then_branch, the costlier one; choose with "
                                  "--set deep=") != std::string::npos);
}

// A detector's file returns early if it found nothing: the step isn't planned as if it always did.
TEST_CASE("set: a branch without elements isn't planned because only its shape is known") {
  const char* text =
      "g (float[N,4] x) => (float[K,4] y) <float[4,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}, "
      "float[0,4] none = {}, int64 zero = {0}> { b = MatMul(x, w) s = ReduceMax<keepdims = 0>(b) "
      "c = Cast<to = 9>(s) y = If(c) <then_branch = t () => (float[0,4] a) { a = Identity(none) }, "
      "else_branch = e () => (float[K,4] d) { p = NonZero(b) q = Gather(p, zero) d = Gather(b, q) "
      "}> }";
  CheckFails(LoadText(text, BatchOf(2)), ErrorCode::kInvalidInput,
             "a shape is unknown: output \"If:y/else_branch/p\"");
}

TEST_CASE("set: contents that do not fit the input are refused") {
  for (const char* text : {"shape=0.5", "shape=[[2,3,4]]", "other=1", "x=[1,2]"}) {
    CAPTURE(text);
    CheckFails(LoadText(kShaped, Set({text})), ErrorCode::kUsage, "");
  }
  LoadOptions both = Set({"w=1"});
  both.weights = {"w"};
  CheckFails(LoadText(kTrainedInputs, both), ErrorCode::kUsage,
             "cannot be both a parameter (--weights) and a constant (--set)");
  CheckFails(LoadText("g (float[N,K] x, int64[K] s) => (float[N,K] y) { y = Relu(x) }",
                      [] {
                        LoadOptions options = Set({"s=[1,2]"});
                        options.dims["K"] = 3;
                        return options;
                      }()),
             ErrorCode::kUsage, "cannot be both 3 and 2");
}

TEST_CASE("set: a shape that is given besides must be that of the contents") {
  const auto load = [](std::vector<int64_t> shape) {
    LoadOptions options = Set({"shape=[2,3,4]"});
    options.input_shapes["shape"] = std::move(shape);
    return LoadText(kShaped, options);
  };
  CHECK(load({3}).ok());
  CheckFails(load({2}), ErrorCode::kUsage,
             "input \"shape\" cannot have both the shape [2] (--input-shape) and contents of shape "
             "[3] (--set)");
  CHECK(load({2, 2}).error().code == ErrorCode::kUsage);
}

TEST_CASE("set: a refusal shows the shape that the file declares") {
  CheckFails(LoadText(kShaped, Set({"x=5"})), ErrorCode::kUsage,
             "input \"x\" is float[N,12] and cannot be set to a whole number");
  CheckFails(LoadText("g (float[N,16] x, int64[K,2] k) => (float[N,16] y) { y = Relu(x) }",
                      Set({"k=0.5"})),
             ErrorCode::kUsage, "input \"k\" is int64[K,2] and cannot be set to a real number");
}

TEST_CASE("set: the inputs that decide a shape are named") {
  const std::string weights = "<float[1,12] w = {1,1,1,1,1,1,1,1,1,1,1,1}> ";
  for (const char* graph : {
           "g (float[N,12] x, int64[K] k) => (float[a,b] y) "
           "@{ h = Mul(x, w) y = Reshape(h, k) }",
           "g (float[N,12] x, int64[1] k) => (float[N,b] y) "
           "@{ h = Mul(x, w) y, i = TopK(h, k) }",
           "g (float[1,12] x, int32[2] k) => (float[N,b] y) "
           "@{ h = Mul(x, w) l = Cast<to = 7>(k) y = Expand(h, l) }",
           "g (float[N,12] x, float[2] k) => (float[a,b] y) "
           "@{ h = Mul(x, w) y = Resize(h, , k) }",
           "g (float[N,12] x, int64 k) => (float[a,b] y) @{ h = Mul(x, w) o = Constant<value_ints "
           "= "
           "[1]>() u = Unsqueeze(k, o0) s = Concat<axis = 0>(u, o) y = Tile(h, s) }",
       }) {
    std::string text = graph;
    text.replace(text.find('@'), 1, weights);
    const size_t zero = text.find("o0");
    if (zero != text.npos) {
      text.replace(zero, 2, "z").insert(text.find("u = "), "z = Constant<value_ints = [0]>() ");
    }
    CAPTURE(text);
    LoadOptions options = BatchOf(2);
    options.dims["K"] = 2;
    options.optional_dims = {"K", "N"};
    onnx::ModelProto proto = ParseGraph(text);
    proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    const Result<Model> model = LoadProto(proto, options);
    REQUIRE_FALSE(model.ok());
    CAPTURE(model.error().message);
    REQUIRE(model.error().remedy.settings.size() == 1);
    CHECK(model.error().remedy.settings[0].name == "set_inputs");
    CHECK(model.error().remedy.settings[0].value == "k=...");
  }
}

TEST_CASE("set: an input that a model lacks is refused, unless it is optional") {
  CheckFails(LoadText(kTrainedInputs, Set({"v=1"})), ErrorCode::kUsage,
             "--set: the model has no input \"v\"");
  LoadOptions options = Set({"v=1"});
  options.optional_dims = {"v="};
  CHECK(LoadText(kTrainedInputs, options).ok());
}

TEST_CASE("weights: inputs that are read as such are suggested, or what is none of many") {
  const auto suggestion = [](int layers) {
    std::string inputs = "float[N,4] x, int64[N] ids";
    std::string nodes = "h0 = MatMul(x, w0) ";
    for (int i = 0; i < layers; ++i) {
      inputs += fmt::format(", float[4,4] w{0}, float[4] b{0}", i);
      if (i > 0) nodes += fmt::format("h{0} = MatMul(a{1}, w{0}) ", i, i - 1);
      nodes += fmt::format("a{0} = Add(h{0}, b{0}) ", i);
    }
    const ModelGraph lowered = LowerText(
        fmt::format("g ({}) => (float[N,4] y) {{ {} y = Relu(a{}) }}", inputs, nodes, layers - 1),
        BatchOf(2));
    REQUIRE_FALSE(lowered.warnings.empty());
    const std::string& warning = lowered.warnings.front();
    return warning.substr(warning.find("--weights"));
  };
  CHECK(suggestion(1) == "--weights w0,b0");
  CHECK(suggestion(3) == "--weights w0,b0,w1,b1,w2,b2");
  CHECK(suggestion(4) == "--weights '!x,!ids'");
}

TEST_CASE("weights: patterns that choose nothing are refused, and what nothing trains has a note") {
  CheckFails(LoadText(kTrainedInputs, Weights({"w", "!w"})), ErrorCode::kUsage,
             "--weights w,!w chooses nothing");
  const Result<Model> model = LoadText(
      "g (float[N,4] x, float[9,4] w, int64[N] ids, int8[4] q) => (float[N,4] y) "
      "{ e = Gather(w, ids) f = Cast<to = 1>(q) h = Add(e, x) y = Add(h, f) }",
      Weights({"w", "ids", "q"}));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(
      std::count(model->warnings().begin(), model->warnings().end(),
                 model->identity().name +
                     ": --weights: \"ids\" int64[2] cannot be trained; it stays constant during a "
                     "step") == 1);
}

}  // namespace
}  // namespace ckplan
