#include "cli/ckexec/plan_again.h"

#include <fmt/format.h>

#include <algorithm>

namespace ckplan {
namespace {

struct Misfit {
  std::string what;
  Bytes bytes;
};

std::optional<Misfit> FirstMisfit(const TensorGraph& graph, int64_t alignment) {
  const auto fits = [alignment](Bytes bytes) { return bytes.count() % alignment == 0; };
  for (const TensorId id : graph.tensors().ids()) {
    const Tensor& tensor = graph.tensor(id);
    const bool is_placed = !tensor.producer.is_none();  // Inputs lie outside the arena.
    if (is_placed && !fits(tensor.bytes)) return Misfit{tensor.name, tensor.bytes};
  }
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    for (const Bytes bytes : {node.forward_workspace, node.backward_workspace}) {
      if (!fits(bytes)) return Misfit{"the workspace of " + node.name, bytes};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string PlanAgainCommand(const Plan& plan, int64_t align_bytes, const ExecOptions& options) {
  PlanRequest request = plan.request;
  request.align_bytes = align_bytes;
  // The default objective also leads to a time-centric plan, and needs no option.
  if (request.objective == Objective::kTime) request.objective = Objective::kAuto;
  request.cost_model = options.request.ValueOf("cost_model").value_or(request.cost_model);
  request.workspaces = options.request.ValueOf("workspaces").value_or(request.workspaces);
  const std::string plan_file = options.plan.value_or("plan.json");
  if (!request.decisions) {
    return fmt::format("ckplan {}{} -o {}", options.model, FlagsFor(request), plan_file);
  }
  // The plan file also serves as a file of decisions. An output may not replace it.
  request.decisions.reset();
  return fmt::format("ckplan {}{} {} {} -o new-plan.json", options.model, FlagsFor(request),
                     FlagOf("decisions"), plan_file);
}

Result<Done> CheckAlignment(const TensorGraph& graph, const Plan& plan, const Backend& backend,
                            const ExecOptions& options) {
  const std::optional<Misfit> misfit = FirstMisfit(graph, backend.alignment());
  if (!misfit) return Done{};
  // Both are powers of two, so the larger one serves both.
  const int64_t align = std::max(backend.alignment(), plan.request.align_bytes);
  return Error{
      ErrorCode::kUsage,
      fmt::format("\"{}\" has {} bytes, but buffers of the {} backend begin at multiples "
                  "of {}; plan again with --align {}",
                  misfit->what, misfit->bytes.count(), backend.name(), backend.alignment(), align),
      {PlanAgainCommand(plan, align, options)}};
}

}  // namespace ckplan
