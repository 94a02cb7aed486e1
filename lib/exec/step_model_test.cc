#include "lib/exec/step_model.h"

#include "lib/cpu/cpu_backend.h"
#include "lib/exec/testing.h"
#include "lib/model/testing.h"

namespace ckplan {
namespace {

Result<StepModel> StepOf(const std::string& graph) {
  const onnx::ModelProto proto = ParseGraph(graph);
  const Model model = LoadProto(proto).value();
  LowerOptions lower;
  lower.cost = ParseCostModel("flops").value();
  return BuildStepModel(model, LowerModel(model, lower).value());
}

}  // namespace

TEST_CASE("step model: half precision runs in float32, and says so") {
  const Result<StepModel> step = StepOf(
      "g (float16[2,4] x) => (float16[2,3] y) "
      "<float16[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { y = MatMul(x, w) }");
  REQUIRE(step.ok());
  REQUIRE(step->notes.size() == 1);
  CHECK(step->notes.front().find("float32") != std::string::npos);
  for (const TensorId id : step->graph.tensors().ids()) {
    CHECK(step->graph.tensor(id).bytes == Bytes(step->tensors[id].bytes()));
  }
}

TEST_CASE("step model: types that nothing runs in are named") {
  const Result<StepModel> step = StepOf(
      "g (uint8[2,4] x) => (float[2,4] y) <float[4] w = {1,2,3,4}> "
      "{ f = Cast<to = 1>(x) y = Mul(f, w) }");
  REQUIRE_FALSE(step.ok());
  CHECK(step.error().code == ErrorCode::kUnsupported);
  REQUIRE(step.error().notes.size() == 1);
  CHECK(step.error().notes.front().find(" x") != std::string::npos);
}

TEST_CASE("step model: what is computed from weights alone is computed once") {
  const auto backend = cpu::MakeCpuBackend(1);
  SmallStep small(*backend, SmallNet(), 2);
  int transposes = 0;
  for (const ConstantOp& op : small.step().constant_ops) transposes += op.spec.type == "Transpose";
  CHECK(transposes == 1);
  for (const StepNode& node : small.step().nodes) CHECK(node.spec.type != "Transpose");
}

TEST_CASE("step model: every node and tensor of the graph, in its sizes") {
  const auto backend = cpu::MakeCpuBackend(1);
  const SmallStep small(*backend, SmallNet(), 2);
  const StepModel& step = small.step();
  REQUIRE(step.nodes.size() == step.graph.nodes().size());
  for (const NodeId id : step.graph.nodes().ids()) {
    CHECK(step.nodes[id].spec.name == step.graph.node(id).name);
    CHECK(step.nodes[id].spec.type == step.graph.node(id).op);
  }
}

}  // namespace ckplan
