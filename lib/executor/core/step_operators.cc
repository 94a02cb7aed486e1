#include "lib/executor/core/step_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "lib/executor/core/constant_store.h"
#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/op_checks.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

namespace {

enum class Saving { kNothing, kMask, kIndices, kInputs, kUnknown };

// True if the kernel reads its output, which PyTorch does not save.
bool ReadsUnsavedOutput(const OpSpec& spec, Autograd autograd) {
  return !FindBackwardReads(spec, Autograd::kMinimal).outputs.empty() &&
         FindBackwardReads(spec, autograd).outputs.empty();
}

Saving SavingOf(const OpSpec& spec, Autograd autograd) {
  if (!IsTorch(autograd) || !NeedsGradient(spec)) return Saving::kNothing;
  const bool has_statistic = spec.statistic_bytes > 0;
  switch (RuleOf(spec.type).statistic) {
    case Statistic::kDropoutMask:
      return has_statistic ? Saving::kMask : Saving::kNothing;
    case Statistic::kPoolIndices:
      return has_statistic ? Saving::kIndices : Saving::kNothing;
    case Statistic::kAttention:
      return has_statistic ? Saving::kUnknown : Saving::kNothing;
    default:
      return ReadsUnsavedOutput(spec, autograd) ? Saving::kInputs : Saving::kNothing;
  }
}

// An operator that wraps a kernel.
class SavingOp : public PreparedOp {
 public:
  explicit SavingOp(std::unique_ptr<PreparedOp> kernel) : kernel_(std::move(kernel)) {}
  OpWorkspace workspace() const override { return kernel_->workspace(); }
  std::vector<LibraryCall> LibraryCalls() const override { return kernel_->LibraryCalls(); }
  std::string WhyOnHost() const override { return kernel_->WhyOnHost(); }

 protected:
  PreparedOp& kernel() const { return *kernel_; }

 private:
  std::unique_ptr<PreparedOp> kernel_;
};

// `mask` is a kernel with the mask as its second output.
class MaskSavingOp final : public SavingOp {
 public:
  MaskSavingOp(std::unique_ptr<PreparedOp> kernel, std::unique_ptr<PreparedOp> mask)
      : SavingOp(std::move(kernel)), mask_(std::move(mask)) {}

  OpWorkspace workspace() const override {
    const OpWorkspace own = kernel().workspace();
    return {std::max(own.forward, mask_->workspace().forward), own.backward};
  }
  void Forward(const ForwardCall& call) override {
    void* const outputs[] = {nullptr, call.statistic};
    mask_->Forward({call.inputs, outputs, nullptr, call.workspace, call.seed});
    kernel().Forward({call.inputs, call.outputs, nullptr, call.workspace, call.seed});
  }
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    kernel().BackwardInput(call, position, gradient);
  }

 private:
  std::unique_ptr<PreparedOp> mask_;
};

class IndexSavingOp final : public SavingOp {
 public:
  using SavingOp::SavingOp;

  void Forward(const ForwardCall& call) override {
    void* const outputs[] = {call.outputs[0], call.statistic};
    kernel().Forward({call.inputs, outputs, nullptr, call.workspace, call.seed});
  }
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const void* const outputs[] = {call.outputs[0], call.statistic};
    kernel().BackwardInput(
        {call.inputs, outputs, call.output_gradients, nullptr, call.workspace, call.seed}, position,
        gradient);
  }
};

// The first gradient recomputes the output into the workspace, after the kernel's part.
class InputSavingOp final : public SavingOp {
 public:
  InputSavingOp(std::unique_ptr<PreparedOp> kernel, const OpSpec& spec, const Backend& backend)
      : SavingOp(std::move(kernel)) {
    while (!spec.input(first_).has_gradient) ++first_;
    const OpWorkspace own = this->kernel().workspace();
    output_at_ = AlignedBytes(own.backward, backend);
    forward_at_ = output_at_ + AlignedBytes(spec.output(0).bytes(), backend);
    backward_bytes_ = forward_at_ + own.forward;
  }

  OpWorkspace workspace() const override { return {kernel().workspace().forward, backward_bytes_}; }
  void Forward(const ForwardCall& call) override { kernel().Forward(call); }
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    char* const workspace = static_cast<char*>(call.workspace);
    void* const again = workspace + output_at_;
    if (position == first_) {
      void* const outputs[] = {again};
      kernel().Forward({call.inputs, outputs, nullptr, workspace + forward_at_, call.seed});
    }
    const void* const outputs[] = {again};
    kernel().BackwardInput(
        {call.inputs, outputs, call.output_gradients, call.statistic, workspace, call.seed},
        position, gradient);
  }

 private:
  size_t first_ = 0;
  int64_t output_at_ = 0, forward_at_ = 0, backward_bytes_ = 0;
};

using PreparedOpPointer = std::unique_ptr<PreparedOp>;

// Returns the spec of the kernel alone: with what the kernel reads, and without a statistic.
OpSpec KernelSpec(const OpSpec& spec) {
  OpSpec kernel = spec;
  kernel.statistic_bytes = 0;
  for (const size_t output : FindBackwardReads(spec, Autograd::kMinimal).outputs) {
    kernel.outputs[output].is_read_by_backward = true;
  }
  return kernel;
}

// Returns the spec with a second output that has as many elements as the first.
OpSpec WithSecondOutput(OpSpec spec, ElementType type) {
  spec.outputs.resize(2);
  Operand& second = spec.outputs[1];
  second = spec.outputs[0].is_present ? spec.outputs[0] : spec.inputs[0];
  second.type = type;
  second.has_gradient = false;
  second.is_read_by_backward = false;
  return spec;
}

// On the CPU, PyTorch saves the factor 0 or 1 / (1 - ratio); we save 0 or 1.
Result<std::unique_ptr<PreparedOp>> PrepareMask(Backend& backend, const OpSpec& spec,
                                                Autograd autograd) {
  constexpr int64_t kOpsetOfBooleans = 13, kOpsetOfFactors = 9;
  const bool is_bool = HasByteMask(spec, autograd);
  OpSpec mask =
      WithSecondOutput(KernelSpec(spec), is_bool ? ElementType::kBool : spec.input(0).type);
  mask.opset = is_bool ? kOpsetOfBooleans : kOpsetOfFactors;
  return backend.Prepare(mask);
}

}  // namespace

bool NeedsWrapper(const OpSpec& spec, Autograd autograd) {
  return SavingOf(spec, autograd) != Saving::kNothing;
}

Result<std::unique_ptr<PreparedOp>> PrepareSaving(Backend& backend, const OpSpec& spec,
                                                  Autograd autograd) {
  switch (SavingOf(spec, autograd)) {
    case Saving::kNothing:
      return backend.Prepare(spec);
    case Saving::kMask: {
      CKPLAN_ASSIGN_OR_RETURN(auto kernel, backend.Prepare(KernelSpec(spec)));
      CKPLAN_ASSIGN_OR_RETURN(auto mask, PrepareMask(backend, spec, autograd));
      return PreparedOpPointer(new MaskSavingOp(std::move(kernel), std::move(mask)));
    }
    case Saving::kIndices: {
      OpSpec pool = WithSecondOutput(KernelSpec(spec), ElementType::kInt64);
      pool.outputs[1].is_read_by_backward = true;
      CKPLAN_ASSIGN_OR_RETURN(auto kernel, backend.Prepare(pool));
      return PreparedOpPointer(new IndexSavingOp(std::move(kernel)));
    }
    case Saving::kInputs: {
      CKPLAN_ASSIGN_OR_RETURN(auto kernel, backend.Prepare(KernelSpec(spec)));
      return PreparedOpPointer(new InputSavingOp(std::move(kernel), spec, backend));
    }
    case Saving::kUnknown:
      break;
  }
  return UnsupportedOp(spec,
                       "its kernels read other tensors than PyTorch saves; plan with --fuse "
                       "captured, or with --autograd minimal");
}

namespace {

// Collects the reasons why nodes cannot run: one line per reason, with the first node and the
// number of other nodes.
class Refusals {
 public:
  void Add(const Error& error, const OpSpec& spec) {
    const size_t colon = error.message.rfind("\": ");
    const std::string why =
        spec.type + ": " +
        (colon == std::string::npos ? error.message : error.message.substr(colon + 3));
    auto& [first, count] = (error.code == ErrorCode::kInvalidInput ? invalid_ : missing_)[why];
    if (count++ == 0) first = spec.name;
  }
  bool empty() const { return invalid_.empty() && missing_.empty(); }

  Error ToError(std::string_view backend) const {
    Error error =
        MakeError(invalid_.empty() ? ErrorCode::kUnsupported : ErrorCode::kInvalidInput,
                  fmt::format("the {} backend cannot run this model: {}", backend, Headline()));
    AddNotes(invalid_, &error);
    AddNotes(missing_, &error);
    return error;
  }

 private:
  using Reasons = std::map<std::string, std::pair<std::string, int>>;

  std::string Headline() const {
    constexpr std::string_view kWhereListed = "`ckexec ops` lists the supported ones";
    if (invalid_.empty()) return fmt::format("{} missing; {}", Count(missing_), kWhereListed);
    if (missing_.empty()) return fmt::format("{} invalid; correct the model", Count(invalid_));
    return fmt::format("{} invalid, and {} missing; correct the model, and {}", Count(invalid_),
                       Count(missing_), kWhereListed);
  }

  static std::string Count(const Reasons& reasons) {
    return fmt::format("{} operator{}", reasons.size(), reasons.size() == 1 ? " is" : "s are");
  }

  static void AddNotes(const Reasons& reasons, Error* error) {
    for (const auto& [why, who] : reasons) {
      error->notes.push_back(
          who.second == 1 ? fmt::format("{} (\"{}\")", why, who.first)
                          : fmt::format("{} (\"{}\" and {} more)", why, who.first, who.second - 1));
    }
  }

  Reasons invalid_;
  Reasons missing_;
};

// Notes which operators the host computes: one sentence for each kind of operator and each reason.
void NoteHost(const StepGraph& step, StepOperators& operators) {
  std::map<std::pair<std::string, std::string>, int> counts;
  const auto count = [&](const OpSpec& spec, const PreparedOp& op, bool is_in_step) {
    const std::string why = op.WhyOnHost();
    if (why.empty()) return;
    ++counts[{spec.type, why}];
    operators.runs_on_host = operators.runs_on_host || is_in_step;
  };
  for (const NodeId id : step.nodes.ids()) count(step.nodes[id].spec, *operators.nodes[id], true);
  for (size_t i = 0; i < step.constant_ops.size(); ++i) {
    const OpSpec& spec = step.constant_ops[i].spec;  // A step computes only its gradients.
    count(spec, *operators.constant_ops[i], NeedsGradient(spec));
  }
  for (const auto& [kind, nodes] : counts) {
    operators.notes.push_back(
        fmt::format("the host computes {} {} node{}, with copies there and back: {}", nodes,
                    kind.first, nodes == 1 ? "" : "s", kind.second));
  }
}

// More calls would take longer than the whole training step of any realistic model.
Result<Done> CheckCalls(const ConstantGradients& gradients, const StepGraph& step) {
  constexpr int64_t kMaxCalls = 1'000'000;
  if (gradients.calls() <= kMaxCalls) return Done{};
  const bool is_many = gradients.calls() == ConstantGradients::kCallsCap;
  return MakeError(
      ErrorCode::kUnsupported,
      fmt::format("the operators between parameters and their use would compute {}{} gradients in "
                  "each step, and at most {} are supported: \"{}\" and others read a result "
                  "several times, one after the other; compute less from parameters",
                  is_many ? "more than " : "", gradients.calls(), kMaxCalls,
                  step.constant_ops.front().spec.name));
}

}  // namespace

Result<StepOperators> PrepareOperators(Backend& backend, const StepGraph& step) {
  StepOperators operators;
  Refusals refusals;
  const auto prepare = [&](const OpSpec& spec, Autograd autograd) -> std::unique_ptr<PreparedOp> {
    auto op = PrepareSaving(backend, spec, autograd);
    if (op.ok()) return std::move(*op);
    refusals.Add(op.error(), spec);
    return nullptr;
  };
  for (const StepNode& node : step.nodes) {
    operators.nodes.push_back(prepare(node.spec, step.autograd));
  }
  for (const ConstantOp& op : step.constant_ops) {
    operators.constant_ops.push_back(prepare(op.spec, Autograd::kMinimal));
  }
  if (!refusals.empty()) return refusals.ToError(backend.name());
  const ConstantGradients gradients(backend, step, operators.constant_ops);
  CKPLAN_RETURN_IF_ERROR(CheckCalls(gradients, step));
  for (const NodeId id : step.nodes.ids()) {
    OpWorkspace workspace = operators.nodes[id]->workspace();
    const int64_t scratch = gradients.ScratchBytes(step.nodes[id]);
    operators.gradient_scratch.push_back(AlignedBytes(workspace.backward, backend));
    if (scratch > 0) workspace.backward = AlignedBytes(workspace.backward, backend) + scratch;
    operators.workspaces.push_back(workspace);
  }
  NoteHost(step, operators);
  return operators;
}

Result<TensorGraph> GraphWithWorkspaces(const StepGraph& step, const StepOperators& operators) {
  TensorGraphParts parts = PartsOf(step.graph);
  for (const NodeId id : parts.nodes.ids()) {
    parts.nodes[id].forward_workspace = Bytes(operators.workspaces[id].forward);
    parts.nodes[id].backward_workspace = Bytes(operators.workspaces[id].backward);
  }
  return TensorGraph::Create(std::move(parts));
}

}  // namespace ckplan
