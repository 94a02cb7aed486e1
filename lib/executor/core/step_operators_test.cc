#include "lib/executor/core/step_operators.h"

#include <fmt/format.h>

#include "lib/executor/core/constant_gradients.h"
#include "lib/executor/core/test_backend.h"
#include "lib/executor/core/testing.h"
#include "lib/files/model/testing.h"

namespace ckplan {
namespace {

// A network of Mul, Relu and Sigmoid, in this order.
const NetText kNet{
    "g (float[4,6] x) => (float[4,6] y) <float[6] w = {1,2,3,4,5,6}> "
    "{ h = Mul(x, w) r = Relu(h) y = Sigmoid(r) }"};

void MakeInvalid(OpSpec& spec) { spec.outputs[0].dims = {4, 7}; }
void MakeUnknown(OpSpec& spec) { spec.type = "Blend"; }

Error RefusalOf(Backend& backend, const StepGraph& step) {
  const Result<StepOperators> operators = PrepareOperators(backend, step);
  REQUIRE_FALSE(operators.ok());
  return operators.error();
}

bool Contains(const Error& error, std::string_view text) {
  return error.message.find(text) != std::string::npos;
}

TEST_CASE("step operators: invalid operators are distinguished from those without a kernel") {
  const auto backend = MakeTestBackend();
  const SmallStep small(*backend, kNet);
  StepGraph step = small.step();
  REQUIRE(step.nodes.size() == 3);

  MakeInvalid(step.nodes[NodeId(1)].spec);
  const Error invalid = RefusalOf(*backend, step);
  CAPTURE(invalid.message);
  CHECK(invalid.code == ErrorCode::kInvalidInput);
  CHECK(Contains(invalid, "cannot run this model: 1 operator is invalid; correct the model"));
  REQUIRE(invalid.notes.size() == 1);
  CHECK(invalid.notes[0].starts_with("Relu: its output is [4,7] instead of [4,6] (\""));

  MakeUnknown(step.nodes[NodeId(0)].spec);
  MakeUnknown(step.nodes[NodeId(2)].spec);
  const Error both = RefusalOf(*backend, step);
  CAPTURE(both.message);
  CHECK(both.code == ErrorCode::kInvalidInput);
  CHECK(Contains(both, "1 operator is invalid, and 1 operator is missing; correct the model, and"));
  REQUIRE(both.notes.size() == 2);
  CHECK(both.notes[0] == invalid.notes[0]);
  CHECK(both.notes[1].ends_with(" and 1 more)"));

  step.nodes[NodeId(1)].spec = small.step().nodes[NodeId(1)].spec;
  const Error missing = RefusalOf(*backend, step);
  CHECK(missing.code == ErrorCode::kUnsupported);
  CHECK(Contains(missing, ": 1 operator is missing; `ckexec ops` lists what there is"));
}

// Builds a step whose weight passes through `times` operators before it is used; "@" stands for the
// result of the last one.
StepGraph Changed(std::string_view by, int times) {
  std::string body;
  for (int i = 0; i < times; ++i) {
    std::string call(by);
    for (size_t at = 0; (at = call.find('@')) != std::string::npos;) {
      call.replace(at, 1, fmt::format("w{}", i));
    }
    body += fmt::format("w{} = {} ", i + 1, call);
  }
  const Result<Model> model = LoadText(fmt::format(
      "g (float[2,3] x) => (float[2,3] y) <float[3] w0 = {{1,2,3}}> {{ {} y = Mul(x, w{}) }}", body,
      times));
  REQUIRE(model.ok());
  LowerOptions options;
  options.cost = ParseCostModel("flops").value();
  return BuildStepGraph(*model, LowerModel(*model, options).value()).value();
}

TEST_CASE("step operators: parameters whose gradients take too many paths are refused") {
  const auto backend = MakeTestBackend();
  const StepGraph few = Changed("Add(@, @)", 10);
  const StepOperators operators = std::move(PrepareOperators(*backend, few)).value();
  CHECK(ConstantGradients(*backend, few, operators.constant_ops).calls() == 2048 - 2);
  CHECK(operators.workspaces[NodeId(0)].backward ==
        operators.gradient_scratch[NodeId(0)] + 11 * BufferAlignment(*backend));
  for (const int times : {19, 60}) {
    const Error refused = RefusalOf(*backend, Changed("Add(@, @)", times));
    CAPTURE(refused.message);
    CHECK(refused.code == ErrorCode::kUnsupported);
    CHECK(Contains(refused, times == 19 ? "would compute 1048574 gradients"
                                        : "would compute more than 1099511627776 gradients"));
  }
}

TEST_CASE("step operators: long chains of operators over a parameter do not overflow the stack") {
  const auto backend = MakeTestBackend();
  constexpr int kLength = 20'000;
  const StepGraph step = Changed("Neg(@)", kLength);
  CHECK(step.constant_ops.size() == kLength);
  const StepOperators operators = std::move(PrepareOperators(*backend, step)).value();
  CHECK(ConstantGradients(*backend, step, operators.constant_ops).calls() == kLength);
}

}  // namespace
}  // namespace ckplan
