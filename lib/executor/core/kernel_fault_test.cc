// Tests that validation finds a backend with one fault: a wrong gradient in any of the runs, a NaN
//  made of operands without one, or memory that a call damages before the same step reads it
// again.
#include <functional>
#include <utility>

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

constexpr uint32_t kNan = 0x7FC00000;  // A NaN other than the poison.

// Callbacks that a test sets to run after each call of an operator.
struct Faults {
  std::function<void(const OpSpec&, const ForwardCall&)> after_forward;
  std::function<void(const OpSpec&, const BackwardCall&, size_t position, void* gradient)>
      after_backward;
};

class FaultyOp final : public PreparedOp {
 public:
  FaultyOp(std::unique_ptr<PreparedOp> op, OpSpec spec, const Faults& faults)
      : op_(std::move(op)), spec_(std::move(spec)), faults_(faults) {}

  OpWorkspace workspace() const override { return op_->workspace(); }
  void Forward(const ForwardCall& call) override {
    op_->Forward(call);
    if (faults_.after_forward) faults_.after_forward(spec_, call);
  }
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    op_->BackwardInput(call, position, gradient);
    if (faults_.after_backward) faults_.after_backward(spec_, call, position, gradient);
  }

 private:
  std::unique_ptr<PreparedOp> op_;
  OpSpec spec_;
  const Faults& faults_;
};

class FaultyBackend final : public ForwardingBackend {
 public:
  explicit FaultyBackend(const Faults& faults)
      : ForwardingBackend(MakeTestBackend()), faults_(faults) {}

  Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) override {
    CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<PreparedOp> op, ForwardingBackend::Prepare(spec));
    return std::unique_ptr<PreparedOp>(std::make_unique<FaultyOp>(std::move(op), spec, faults_));
  }
  // Joined operators would not call the faulty ones.
  size_t FusibleLength(std::span<const ChainedOp>) const override { return 0; }

 private:
  const Faults& faults_;
};

class FaultyStep {
 public:
  explicit FaultyStep(ActivationType type)
      : backend_(faults_), small_(backend_, SmallNet(), 2, type) {
    Rng rng(3);
    plan_ = small_.Random(rng, 50);
  }

  Faults& faults() { return faults_; }

  // Inverts one bit of the first element.
  void Damage(const void* memory) {
    unsigned char byte = 0;
    backend_.Download(&byte, memory, 1);
    byte ^= 1;
    backend_.Upload(const_cast<void*>(memory), &byte,
                    1);  // NOLINT: a fault may write to const memory.
  }
  void WriteNan(void* memory, ElementType type) {
    const uint32_t bits = type == ElementType::kBFloat16 ? kNan >> 16 : kNan;
    backend_.Upload(memory, &bits, SizeOf(type));
  }

  // Checks that there is a single failure, whose message begins with `beginning`.
  void CheckFails(const std::string& beginning, int timed_runs = 0) {
    const ValidationReport report = small_.Validate(small_.KeepAll(), plan_, timed_runs);
    REQUIRE(report.failures.size() == 1);
    const std::string& failure = report.failures.front().message;
    CAPTURE(failure);
    CAPTURE(beginning);
    CHECK(failure.find(beginning) == 0);
  }
  bool IsAsynchronous() const { return backend_.IsAsynchronous(); }
  bool Passes() { return small_.Validate(small_.KeepAll(), plan_).failures.empty(); }

  // Returns, for example, "step 13 (forward of \"Exp:e\")", where everything is kept.
  std::string StepOf(ActionKind kind, const std::string& node) const {
    const Program program = small_.KeepAll().program;
    for (const Action& action : program.actions) {
      if (action.kind != kind) continue;
      std::string text = StepText(small_.step(), program, action);
      if (text.find("\"" + node + "\"") != std::string::npos) return text;
    }
    FAIL("there is no such step of " << node);
    return "";
  }

 private:
  Faults faults_;
  FaultyBackend backend_;
  SmallStep small_;
  PlacedProgram plan_;
};

// Each of the four runs computes the gradient of w1 once.
void FindsWrongGradientOfEachRun(ActivationType type) {
  constexpr const char* kWhere[] = {
      // The second run is reported, because it differs from the first run, which was damaged.
      "keeping everything: with separate buffers, ", "keeping everything: with separate buffers, ",
      "the plan: in the arena, ", "the plan: with separate buffers, "};
  for (int damaged = 0; damaged < 4; ++damaged) {
    CAPTURE(damaged);
    FaultyStep step(type);
    int runs = 0;
    step.faults().after_backward = [&](const OpSpec& spec, const BackwardCall&, size_t position,
                                       void* gradient) {
      if (spec.name == "Conv:c1" && position == 1 && runs++ == damaged) step.Damage(gradient);
    };
    step.CheckFails(std::string(kWhere[damaged]) +
                    "the gradients of 1 of 8 parameters differ from those of keeping everything in "
                    "the arena; the first is \"w1\", in 1 elements, by at most ");
  }
}

// After the four runs, an asynchronous device runs two steps for each schedule.
void FindsWrongGradientOfTimedSteps(ActivationType type) {
  const int steps = FaultyStep(type).IsAsynchronous() ? 4 : 2;
  for (int damaged = 0; damaged < steps; ++damaged) {
    CAPTURE(damaged);
    FaultyStep step(type);
    int runs = -4;
    step.faults().after_backward = [&](const OpSpec& spec, const BackwardCall&, size_t position,
                                       void* gradient) {
      if (spec.name == "Conv:c1" && position == 1 && runs++ == damaged) step.Damage(gradient);
    };
    const std::string which = damaged < steps / 2 ? "keeping everything" : "the plan";
    step.CheckFails(which + ": in a timed step, the gradients of 1 of 8 parameters differ ", 1);
  }
}

void FindsNanInOutput(ActivationType type) {
  FaultyStep step(type);
  step.faults().after_forward = [&](const OpSpec& spec, const ForwardCall& call) {
    if (spec.name == "Exp:e") step.WriteNan(call.outputs[0], spec.outputs[0].type);
  };
  step.CheckFails("keeping everything: " + step.StepOf(ActionKind::kForward, "Exp:e") +
                  " leaves a NaN in \"e\", ");
}

void FindsNanInGradient(ActivationType type) {
  FaultyStep step(type);
  step.faults().after_backward = [&](const OpSpec& spec, const BackwardCall&, size_t,
                                     void* gradient) {
    if (spec.name == "Exp:e") step.WriteNan(gradient, spec.inputs[0].type);
  };
  step.CheckFails("keeping everything: " + step.StepOf(ActionKind::kBackward, "Exp:e") +
                  " leaves a NaN in the gradient of \"h\", ");
}

void FindsNanInGradientOfParameter(ActivationType type) {
  FaultyStep step(type);
  step.faults().after_backward = [&](const OpSpec& spec, const BackwardCall&, size_t position,
                                     void* gradient) {
    if (spec.name == "Conv:c1" && position == 2) step.WriteNan(gradient, spec.inputs[2].type);
  };
  step.CheckFails("keeping everything: in the arena, the gradient of \"b1\" has a NaN");
}

// The gradient of the second factor is computed from the first factor, which the step has already
// read once.
void FindsOperandDamagedWithinStep(ActivationType type) {
  FaultyStep step(type);
  step.faults().after_backward = [&](const OpSpec& spec, const BackwardCall& call, size_t position,
                                     void*) {
    if (spec.name == "Mul:m3" && position == 0) step.Damage(call.inputs[0]);
  };
  step.CheckFails("keeping everything: " + step.StepOf(ActionKind::kBackward, "Mul:m3") +
                  " reads \"s3\", but its memory was overwritten");
}

}  // namespace

TEST_CASE("kernel fault: a wrong gradient in one of the four runs") {
  ForEachType(FindsWrongGradientOfEachRun);
}
TEST_CASE("kernel fault: a wrong gradient in a timed step") {
  ForEachType(FindsWrongGradientOfTimedSteps);
}
TEST_CASE("kernel fault: a NaN in an output, in all runs alike") { ForEachType(FindsNanInOutput); }
TEST_CASE("kernel fault: a NaN in a gradient, in all runs alike") {
  ForEachType(FindsNanInGradient);
}
TEST_CASE("kernel fault: a NaN in a parameter's gradient, in all runs alike") {
  ForEachType(FindsNanInGradientOfParameter);
}
TEST_CASE("kernel fault: an operand is damaged between two gradients of one step") {
  ForEachType(FindsOperandDamagedWithinStep);
}

}  // namespace ckplan
