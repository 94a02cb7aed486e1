#include "lib/exec/step_operators.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "lib/exec/constant_gradients.h"

namespace ckplan {

namespace {

// Why nodes cannot run: one line for each reason, with the first node and the number of others.
class Refusals {
 public:
  void Add(const Error& error, const OpSpec& spec) {
    const size_t colon = error.message.rfind("\": ");
    const std::string why =
        spec.type + ": " +
        (colon == std::string::npos ? error.message : error.message.substr(colon + 3));
    auto& [first, count] = reasons_[why];
    if (count++ == 0) first = spec.name;
  }
  bool empty() const { return reasons_.empty(); }

  Error ToError(std::string_view backend) const {
    Error error =
        MakeError(ErrorCode::kUnsupported,
                  fmt::format("the {} backend cannot run this model: {} operator{} "
                              "missing; `ckexec ops` lists what there is",
                              backend, reasons_.size(), reasons_.size() == 1 ? " is" : "s are"));
    for (const auto& [why, who] : reasons_) {
      error.notes.push_back(
          who.second == 1 ? fmt::format("{} (\"{}\")", why, who.first)
                          : fmt::format("{} (\"{}\" and {} more)", why, who.first, who.second - 1));
    }
    return error;
  }

 private:
  std::map<std::string, std::pair<std::string, int>> reasons_;
};

}  // namespace

Result<StepOperators> PrepareOperators(Backend& backend, const StepGraph& step) {
  StepOperators operators;
  Refusals refusals;
  const auto prepare = [&](const OpSpec& spec) -> std::unique_ptr<PreparedOp> {
    auto op = backend.Prepare(spec);
    if (op.ok()) return std::move(*op);
    refusals.Add(op.error(), spec);
    return nullptr;
  };
  for (const StepNode& node : step.nodes) operators.nodes.push_back(prepare(node.spec));
  for (const ConstantOp& op : step.constant_ops) {
    operators.constant_ops.push_back(prepare(op.spec));
  }
  if (!refusals.empty()) return refusals.ToError(backend.name());
  const ConstantGradients gradients(backend, step, operators.constant_ops);
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
