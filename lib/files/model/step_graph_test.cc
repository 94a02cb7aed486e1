#include "lib/files/model/step_graph.h"

#include "lib/files/model/testing/models.h"

namespace ckplan {
namespace {

Result<StepGraph> StepOf(const std::string& graph, ActivationType type = ActivationType::kOfModel) {
  LoadOptions options;
  options.activation_type = type;
  const Model model = LoadText(graph, options).value();
  LowerOptions lower;
  lower.cost = ParseCostModel("flops").value();
  return BuildStepGraph(model, LowerModel(model, lower).value());
}

}  // namespace

TEST_CASE("step graph: half precision runs in float32, and says so") {
  const Result<StepGraph> step = StepOf(
      "g (float16[2,4] x) => (float16[2,3] y) "
      "<float16[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { y = MatMul(x, w) }");
  REQUIRE(step.ok());
  REQUIRE(step->notes.size() == 1);
  CHECK(step->notes.front().find("float32") != std::string::npos);
  for (const TensorId id : step->graph.tensors().ids()) {
    CHECK(step->graph.tensor(id).bytes == Bytes(step->tensors[id].bytes()));
  }
}

TEST_CASE("step graph: bfloat16 is used for values that depend on the batch, and says so") {
  const Result<StepGraph> built = StepOf(
      "g (float[2,4] x) => (float[2,3] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
      "float[3] s = {1,1,1}, float[3] b = {0,0,0}> { v = Transpose<perm = [1,0]>(w) "
      "h = MatMul(x, v) n = LayerNormalization(h, s, b) k = Greater(n, b) y = Where(k, n, h) }",
      ActivationType::kBFloat16);
  REQUIRE_MESSAGE(built.ok(), built.error().message);
  const StepGraph& step = *built;
  REQUIRE(step.notes.size() == 1);
  CHECK(step.notes.front().find("bfloat16") != std::string::npos);
  CHECK(step.inputs.front().operand.type == ElementType::kBFloat16);
  for (const StepConstant& constant : step.constants) {
    CHECK(constant.operand.type == ElementType::kFloat32);
  }
  for (const ConstantOp& op : step.constant_ops) {
    CHECK(op.spec.outputs[0].type == ElementType::kFloat32);
  }
  int floats = 0;
  for (const StepNode& node : step.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ElementType type = node.spec.inputs[i].type;
      const bool is_constant = !node.inputs[i].constant.is_none();
      CHECK(type != (is_constant ? ElementType::kBFloat16 : ElementType::kFloat32));
    }
    floats += node.spec.outputs[0].type == ElementType::kBFloat16 ? 1 : 0;
  }
  CHECK(floats == static_cast<int>(step.nodes.size()) - 1);  // All except k.
  // The planner counted these sizes, including statistics.
  const TensorGraph& planned = step.graph;
  for (const TensorId id : planned.tensors().ids()) {
    const Tensor& tensor = planned.tensor(id);
    const int64_t element = tensor.name == "k" ? 1 : 2;
    if (tensor.kind == TensorKind::kStatistic) {
      CHECK(tensor.bytes == Bytes(2 * 8));  // A mean and an inverse deviation for each row.
    } else {
      CHECK(tensor.bytes == Bytes(element * step.tensors[id].elements()));
    }
  }
}

TEST_CASE(
    "step graph: a model's own half precision, counted as float32, runs in the plan's sizes") {
  constexpr const char* kHalf =
      "g (float16[5,2,1] x) => (float16[5,1,2,1] y) <float16[1,4,1] w = {1,2,3,4}, "
      "float16[1,4,1] r = {1,2,3,4}> { y = LSTM<hidden_size = 1>(x, w, r) }";
  const auto bytes = [&](ActivationType type) {
    const StepGraph step = StepOf(kHalf, type).value();
    int64_t sum = 0;
    for (const Tensor& tensor : step.graph.tensors()) sum += tensor.bytes.count();
    return sum;
  };
  constexpr int64_t kGates = 5 * 2 * 5 * 4;
  CHECK(bytes(ActivationType::kOfModel) == 2 * 10 * 4 + kGates);
  CHECK(bytes(ActivationType::kFloat32) == 2 * 10 * 4 + kGates);
  CHECK(bytes(ActivationType::kBFloat16) == 2 * 10 * 2 + kGates);
}

TEST_CASE("step graph: unsupported types are named") {
  const Result<StepGraph> step = StepOf(
      "g (uint8[2,4] x) => (float[2,4] y) <float[4] w = {1,2,3,4}> "
      "{ f = Cast<to = 1>(x) y = Mul(f, w) }");
  REQUIRE_FALSE(step.ok());
  CHECK(step.error().code == ErrorCode::kUnsupported);
  REQUIRE(step.error().notes.size() == 1);
  CHECK(step.error().notes.front().find(" x") != std::string::npos);
}

TEST_CASE("step graph: values computed from weights alone are computed once") {
  const Result<StepGraph> step = StepOf(
      "g (float[2,4] x) => (float[2,3] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}> "
      "{ v = Transpose<perm = [1,0]>(w) y = MatMul(x, v) }");
  REQUIRE(step.ok());
  REQUIRE(step->constant_ops.size() == 1);
  CHECK(step->constant_ops.front().spec.type == "Transpose");
  REQUIRE(step->nodes.size() == 1);
  CHECK(step->nodes.begin()->spec.type == "MatMul");
}

TEST_CASE("step graph: every node of the graph is the operator that it was made from") {
  const Result<StepGraph> built = StepOf(
      "g (float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
      "int64[2] s = {4, 2}> { v = Reshape(x, s) r = Relu(v) t = Transpose<perm = [1,0]>(r) "
      "y = MatMul(t, w) }");
  REQUIRE(built.ok());
  const StepGraph& step = *built;
  REQUIRE(step.nodes.size() == step.graph.nodes().size());
  for (const NodeId id : step.graph.nodes().ids()) {
    CHECK(step.nodes[id].spec.name == step.graph.node(id).name);
    CHECK(step.nodes[id].spec.type == step.graph.node(id).op);
    for (const Binding& input : step.nodes[id].inputs) {
      if (!input.tensor.is_none()) CHECK(input.tensor == step.graph.node(id).inputs.front());
    }
  }
}

TEST_CASE("step graph: the first use of a trained leaf counts, also through a transposition") {
  const Result<StepGraph> built = StepOf(
      "g (float[2,4] x) => (float[2,3] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
      "float[3] b = {1,2,3}> { v = Transpose<perm = [1,0]>(w) h = MatMul(x, v) y = Add(h, b) }");
  REQUIRE(built.ok());
  for (const StepConstant& constant : built->constants) {
    if (constant.name == "w") CHECK(constant.used.use == ParameterUse::kWeight);
    if (constant.name == "w") CHECK(constant.used.fan_in == 4);
    if (constant.name == "b") CHECK(constant.used.use == ParameterUse::kShift);
  }
}

TEST_CASE("step graph: indices are below the length of the axis that they index, cast or not") {
  const Result<StepGraph> built = StepOf(
      "g (int32[2] x) => (float[4,2] y) <float[3,2] w = {1,2,3,4,5,6}, int64[2] c = {1, 2}> "
      "{ i = Cast<to = 7>(x) a = Gather(w, i) b = Gather(w, c) y = Concat<axis = 0>(a, b) }");
  REQUIRE_MESSAGE(built.ok(), built.error().message);
  REQUIRE(built->inputs.size() == 1);
  CHECK(built->inputs.front().index_bound == 3);
  for (const StepConstant& constant : built->constants) {
    if (constant.name == "c") CHECK(constant.index_bound == 3);
  }
}

}  // namespace ckplan
