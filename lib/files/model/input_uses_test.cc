// Tests of inputs that are parameters, and of inputs whose contents are known.
#include <algorithm>

#include "lib/files/model/testing_proto.h"

namespace ckplan {
namespace {

ModelGraph Lowered(const Model& model) {
  LowerOptions options;
  options.cost = ParseCostModel("flops").value();
  Result<ModelGraph> lowered = LowerModel(model, options);
  REQUIRE_MESSAGE(lowered.ok(), lowered.error().message);
  return std::move(lowered).value();
}

constexpr const char* kGraph =
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
  const ConstantMemory none = LowerText(kGraph, BatchOf(2)).graph.constants();
  CHECK(none.parameter_gradients == Bytes(0));
  CHECK(none.inputs == Bytes((8 + 32 + 8) * 4));
  const ConstantMemory both = LowerText(kGraph, Weights({"w", "b"})).graph.constants();
  CHECK(both.parameters == Bytes((32 + 8) * 4));
  CHECK(both.parameter_gradients == both.parameters);
  CHECK(both.inputs == Bytes(8 * 4));
  const ConstantMemory rest = LowerText(kGraph, Weights({"!x"})).graph.constants();
  CHECK(rest.parameters == both.parameters);
  LoadOptions frozen = Weights({"!x"});
  frozen.freeze = {"w"};
  CHECK(LowerText(kGraph, frozen).graph.constants().parameter_gradients == Bytes(8 * 4));
}

TEST_CASE("weights: an input that doesn't exist, or is text, is refused") {
  CheckFails(LoadText(kGraph, Weights({"v"})), ErrorCode::kUsage, "no input is called \"v\"");
  CheckFails(LoadText("g (string[2] t) => (float[2] y) { y = Cast<to = 1>(t) }",
                      [] {
                        LoadOptions options;
                        options.weights = {"t"};
                        return options;
                      }()),
             ErrorCode::kUsage, "input \"t\" is no tensor of numbers");
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
  CHECK(model->warnings()[0].find("is planned by its then_branch, the costlier one; choose with "
                                  "--set deep=") != std::string::npos);
}

TEST_CASE("set: contents that do not fit the input are refused") {
  for (const char* text : {"shape=0.5", "shape=[[2,3,4]]", "other=1", "x=[1,2]"}) {
    CAPTURE(text);
    CheckFails(LoadText(kShaped, Set({text})), ErrorCode::kUsage, "");
  }
  LoadOptions both = Set({"w=1"});
  both.weights = {"w"};
  CheckFails(LoadText(kGraph, both), ErrorCode::kUsage, "both a parameter and set");
  CheckFails(LoadText("g (float[N,K] x, int64[K] s) => (float[N,K] y) { y = Relu(x) }",
                      [] {
                        LoadOptions options = Set({"s=[1,2]"});
                        options.dims["K"] = 3;
                        return options;
                      }()),
             ErrorCode::kUsage, "cannot be both 3 and 2");
}

}  // namespace
}  // namespace ckplan
