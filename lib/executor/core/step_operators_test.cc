#include "lib/executor/core/step_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/testing/steps.h"
#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/files/model/testing/models.h"
#include "lib/problem/ops/families.h"

namespace ckplan {

namespace {

constexpr uint64_t kCaseSeed = 77;
constexpr Autograd kOfTorch[] = {Autograd::kTorch, Autograd::kTorchCuda};

struct StepOfOperator {
  reference::ForwardResult forward;
  reference::BackwardResult backward;
};

// Runs the operator forward and, if it has a gradient, backward; the memory is watched.
StepOfOperator RunBoth(Backend& backend, PreparedOp& op, const OpSpec& spec,
                       const reference::OpCase& op_case) {
  const std::vector<reference::Tensor> inputs = reference::FillInputs(op_case, kCaseSeed);
  StepOfOperator step{reference::RunForward(backend, op, spec, inputs, kCaseSeed), {}};
  const auto has_gradient = [](const Operand& operand) { return operand.has_gradient; };
  const bool has_backward = std::any_of(spec.inputs.begin(), spec.inputs.end(), has_gradient) &&
                            std::any_of(spec.outputs.begin(), spec.outputs.end(), has_gradient);
  if (!has_backward) return step;
  Rng rng(kCaseSeed);
  std::vector<reference::Tensor> arriving;
  for (const Operand& output : spec.outputs) {
    arriving.push_back(reference::RandomGradient(output, rng));
    if (!output.has_gradient) arriving.back() = {};
  }
  step.backward =
      reference::RunBackward(backend, op, spec, inputs, step.forward, arriving, kCaseSeed);
  return step;
}

void CheckNoFaults(const StepOfOperator& step) {
  for (const std::string& fault : step.forward.faults) FAIL_CHECK(fault);
  for (const std::string& fault : step.backward.faults) FAIL_CHECK(fault);
}

// Backward sees only what PyTorch saves, and computes the gradients of the kernel.
void CheckCase(Backend& backend, const reference::CaseRow& row) {
  CAPTURE(row.type);
  CAPTURE(row.operands);
  CAPTURE(row.attributes);
  const reference::OpCase op_case = reference::ParseCase(row);
  const OpSpec minimal = reference::SpecOfCase(row);
  auto kernel = backend.Prepare(minimal);
  REQUIRE(kernel.ok());
  const StepOfOperator expected = RunBoth(backend, **kernel, minimal, op_case);
  for (const Autograd autograd : kOfTorch) {
    CAPTURE(NameOf(autograd));
    const OpSpec spec = reference::SpecOfCase(row, autograd);
    auto prepared = PrepareSaving(backend, spec, autograd);
    if (!prepared.ok()) {
      CHECK(prepared.error().code == ErrorCode::kUnsupported);
      CHECK(row.type.substr(0, 9) == "Attention");
      continue;
    }
    const StepOfOperator found = RunBoth(backend, **prepared, spec, op_case);
    CheckNoFaults(found);
    CHECK(found.forward.outputs == expected.forward.outputs);
    CHECK(found.backward.gradients == expected.backward.gradients);
  }
}

void CheckCases(std::span<const reference::CaseRow> rows) {
  const auto backend = MakeTestBackend();
  for (const reference::CaseRow& row : rows) CheckCase(*backend, row);
}

TEST_CASE("saving: every operator computes the same by what PyTorch saves") {
#define CKPLAN_FAMILY(Name) CheckCases(reference::Name##Cases());
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
}

TEST_CASE("saving: what ran in place computes the same by what is left of it") {
  const auto backend = MakeTestBackend();
  for (const char* const type : {"LeakyRelu", "Elu", "Selu", "Celu", "Swish", "Relu"}) {
    CheckCase(*backend, {type, "f40 -> f40", "in_place=1"});
  }
  const reference::CaseRow dropout{"Dropout", "f400 fs=[0.25] -> f400", "in_place=1"};
  CheckCase(*backend, dropout);
  CHECK(reference::SpecOfCase(dropout, Autograd::kTorchCuda).statistic_bytes == 1600);
}

TEST_CASE("saving: Dropout saves what it drops, in bytes for a GPU and in floats for a CPU") {
  const auto backend = MakeTestBackend();
  for (const char* const operands :
       {"f400 fs=[0.25] -> f400", "f400 fs=[0.25] -> f400 b400", "f400 -> f400"}) {
    const reference::CaseRow row{"Dropout", operands, ""};
    CheckCase(*backend, row);
    for (const Autograd autograd : kOfTorch) {
      const OpSpec spec = reference::SpecOfCase(row, autograd);
      const size_t element = autograd == Autograd::kTorchCuda ? 1 : 4;
      REQUIRE(spec.statistic_bytes == static_cast<int64_t>(400 * element));
      auto op = PrepareSaving(*backend, spec, autograd);
      REQUIRE(op.ok());
      const StepOfOperator step = RunBoth(*backend, **op, spec, reference::ParseCase(row));
      const reference::Tensor y = reference::FromBytes(step.forward.outputs[0], spec.outputs[0]);
      int dropped = 0;
      for (size_t i = 0; i < 400; ++i) {
        const auto* const saved = step.forward.statistic.data() + i * element;
        const bool is_kept =
            std::any_of(saved, saved + element, [](auto byte) { return byte != 0; });
        CHECK(is_kept == (y.values[i] != 0));
        dropped += is_kept ? 0 : 1;
      }
      CHECK(dropped > 50);
      CHECK(dropped < 300);
    }
  }
}

// Operators for which PyTorch saves something other than what the kernels read.
const NetText kSavingNet{
    "g (float[N,4,8,8] x) => (float[N,6] y) <float two = {2}, float p = {0.25}, "
    "bool is_training = {1}> {"
    "  c1 = Conv<pads = [1,1,1,1]>(x, w1)"
    "  l1 = LeakyRelu<alpha = 0.1>(c1)"
    "  e1 = Elu(l1)"
    "  m1 = MaxPool<kernel_shape = [2,2], strides = [2,2]>(e1)"
    "  a1 = AveragePool<kernel_shape = [2,2], strides = [2,2]>(e1)"
    "  s1 = Sigmoid(a1)"
    "  q1 = Div(m1, s1)"
    "  d1 = Dropout(q1, p, is_training)"
    "  g1 = GlobalMaxPool(d1)"
    "  f1 = Flatten(g1)"
    "  h1 = MatMul(f1, w2)"
    "  y = LogSoftmax(h1)"
    "}",
    {{"w1", {4, 4, 3, 3}}, {"w2", {4, 6}}}};

TEST_CASE("saving: plans by all autograds are proven, and their gradients are the same") {
  std::vector<std::vector<float>> expected;
  for (const Autograd autograd : {Autograd::kMinimal, Autograd::kTorch, Autograd::kTorchCuda}) {
    CAPTURE(NameOf(autograd));
    for (const NetText& net : {kSavingNet, SmallNet()}) {
      const auto backend = MakeTestBackend();
      SmallStep small(*backend, net, 3, ActivationType::kOfModel, FusedOperators::kNone, autograd);
      const PlacedProgram keep_all = small.KeepAll();
      Rng rng(5);
      for (const int percent : {0, 30, 70}) {
        const PlacedProgram plan = small.Random(rng, percent);
        const ValidationReport report = small.Validate(keep_all, plan);
        for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
        CHECK(report.plan.counted_peak.total == plan.predicted_peak);
      }
      if (net.graph != kSavingNet.graph) continue;
      std::vector<std::vector<float>> gradients;
      for (const ConstantId leaf : small.constants().trained()) {
        gradients.push_back(small.constants().DownloadGradient(leaf));
      }
      if (expected.empty()) expected = gradients;
      CHECK(gradients == expected);
    }
  }
}

TEST_CASE("saving: backward looks at what is kept for PyTorch alone") {
  const auto inputs_of_pool = [](Autograd autograd) {
    const auto backend = MakeTestBackend();
    SmallStep small(*backend, kSavingNet, 3, ActivationType::kOfModel, FusedOperators::kNone,
                    autograd);
    const PlacedProgram plan = small.KeepAll();
    int kept = 0;
    for (const Action& action : plan.program.actions) {
      if (action.kind != ActionKind::kBackward) continue;
      const Call& call = plan.program.calls[static_cast<size_t>(action.call)];
      if (small.step().nodes[call.node].spec.type != "AveragePool") continue;
      kept += call.inputs[0] != kNoBuffer ? 1 : 0;
    }
    return kept;
  };
  CHECK(inputs_of_pool(Autograd::kMinimal) == 0);
  CHECK(inputs_of_pool(Autograd::kTorch) == 1);
}

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
  CHECK(Contains(missing, ": 1 operator is missing; `ckexec ops` lists the supported ones"));
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
