#include "lib/executor/core/step_operators.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "lib/executor/core/constant_gradients.h"
#include "lib/executor/core/saving_operator.h"

namespace ckplan {

namespace {

// Collects why nodes cannot run: one line for each reason, with the first node and the number of
// others.
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
    constexpr std::string_view kWhereListed = "`ckexec ops` lists what there is";
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

// More calls would take longer than the whole training step of any realistic model.
Result<Done> CheckCalls(const ConstantGradients& gradients, const StepGraph& step) {
  constexpr int64_t kMaxCalls = 1'000'000;
  if (gradients.calls() <= kMaxCalls) return Done{};
  const bool is_many = gradients.calls() == ConstantGradients::kManyCalls;
  return MakeError(
      ErrorCode::kUnsupported,
      fmt::format("the operators between parameters and their use would compute {}{} gradients in "
                  "each step, and at most {} are supported: \"{}\" and others read one result "
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
