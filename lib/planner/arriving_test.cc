#include <doctest/doctest.h>

#include <string>

#include "lib/joint/joint_graph.h"
#include "lib/plan/assemble_joint.h"
#include "lib/planner/plan_file.h"
#include "lib/planner/planner.h"
#include "lib/planner/registry.h"

namespace ckplan {
namespace {

PlanRequest Arriving() {
  PlanRequest request;
  request.gradients = ParameterGradients::kArriving;
  request.effort = SearchEffort::kQuick;
  return request;
}

Bytes Total(const PlanFigures& figures) { return figures.peak + TotalConstants(figures); }

}  // namespace

TEST_CASE("arriving gradients: a model's step counts each from the node that makes it on") {
  const std::string path = "testdata/models/squeezenet1_1.onnx";
  PlanRequest request = Arriving();
  request.dims = {{"N", 2}};
  const Source arriving = LoadSource(path, request).value();
  request.gradients = ParameterGradients::kConstant;
  const Source constant = LoadSource(path, request).value();
  REQUIRE(arriving.joint);
  CHECK(arriving.is_model);
  CHECK(arriving.joint->ops().size() == 2 * constant.graph.nodes().size() + 1);
  const ConstantMemory& together = constant.graph.constants();
  CHECK(OptimizedBytes(arriving) == together.parameter_gradients);
  // Each parameter is trained by a node.
  CHECK(JointConstants(*arriving.joint).parameter_gradients == Bytes(0));
  CHECK(JointConstants(*arriving.joint).inputs == together.parameters + together.inputs);
  const Bytes gradients = together.parameter_gradients;
  CHECK(BaselinePeak(arriving) >= std::max(BaselinePeak(constant), gradients));
  CHECK(BaselinePeak(arriving) < BaselinePeak(constant) + gradients);

  for (const std::string_view algorithm : {"keep-all", "best"}) {
    CAPTURE(std::string(algorithm));
    PlanRequest plan_request = Arriving();
    plan_request.algorithm = algorithm;
    plan_request.optimizer = Optimizer::kAdam;
    const Bytes total = BaselinePeak(constant) +
                        TotalConstants(together, OptimizerState(Optimizer::kAdam, gradients));
    plan_request.total_budget = Budget::Of(total - Bytes(1));
    const Plan plan = MakePlan(arriving, plan_request, {}).value();
    CHECK(Total(plan.figures) < total);
    CHECK(plan.figures.optimizer_state == 2 * gradients);
    CHECK(plan.request.gradients == ParameterGradients::kArriving);
    CHECK(JudgePlanFile({arriving, plan, path}).empty());
    Plan damaged = plan;
    damaged.figures.optimizer_state = Bytes(0);
    CHECK_FALSE(JudgePlanFile({arriving, damaged, path}).empty());
  }
}

TEST_CASE("arriving gradients: a parameter that several nodes train arrives with the first") {
  // The embedding of tiny GPTs and BERTs is their last layer as well.
  PlanRequest request = Arriving();
  const std::string path = "testdata/models/gpt2_small.onnx";
  request.dims = {{"N", 1}};
  const Source source = LoadSource(path, request).value();
  REQUIRE(source.joint);
  Bytes arriving;
  for (const Value& value : source.joint->values()) {
    if (value.kind == ValueKind::kArrivingGradient) arriving += value.bytes;
  }
  CHECK(arriving == OptimizedBytes(source));
}

TEST_CASE("arriving gradients: of joint graphs as well, of forward graph files not") {
  const Source joint = LoadSource("testdata/graphs/joint_net.json", Arriving()).value();
  REQUIRE(joint.joint);
  CHECK(OptimizedBytes(joint) == Bytes(65536));
  // d_h, the loss and the gradient itself.
  CHECK(BaselinePeak(joint) == Bytes(16384 + 4 + 65536));
  const Result<Source> forward = LoadSource("testdata/graphs/net.json", Arriving());
  REQUIRE_FALSE(forward.ok());
  CHECK(forward.error().code == ErrorCode::kUsage);
  CHECK(forward.error().message.starts_with("arriving gradients are for models and joint graphs"));
}

TEST_CASE("arriving gradients: algorithms on forward graphs say why they refuse a model") {
  PlanRequest request = Arriving();
  request.dims = {{"N", 1}};
  const Source source = LoadSource("testdata/models/tiny_mlp.onnx", request).value();
  request.algorithm = "exact-dp";
  const Error error = MakePlan(source, request, {}).error();
  CHECK(error.code == ErrorCode::kUsage);
  REQUIRE(error.notes.size() == 1);
  CHECK(error.notes.front() ==
        "a step whose gradients of parameters arrive is planned as a joint graph");
}

}  // namespace ckplan
