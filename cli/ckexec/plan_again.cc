#include "cli/ckexec/plan_again.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    const bool is_placed = !tensor.producer.is_none();  // Inputs lie apart.
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
  const PlanRequest& request = plan.request;
  std::string text = "ckplan " + options.model;
  for (const auto& [name, size] : plan.model.dims) text += fmt::format(" -D {}={}", name, size);
  for (const auto& [name, shape] : plan.model.input_shapes) {
    text += fmt::format(" --input-shape {}={}", name, fmt::join(shape, ","));
  }
  text += " --algo " + request.algorithm;
  if (request.budget) text += fmt::format(" --budget {}", request.budget->count());
  if (request.paper_budget)
    text += fmt::format(" --paper-budget {}", request.paper_budget->count());
  text += " --cost " + options.cost.value_or(request.cost_model);
  if (request.objective != Objective::kTime) {
    text += fmt::format(" --objective {}", NameOf(request.objective));
  }
  if (request.optimizer != Optimizer::kSgd) {
    text += fmt::format(" --optimizer {}", NameOf(request.optimizer));
  }
  if (request.granularity != Granularity::kNode) {
    text += fmt::format(" --granularity {}", NameOf(request.granularity));
  }
  if (request.activation_type != ActivationType::kOfModel) {
    text += fmt::format(" --activation-type {}", NameOf(request.activation_type));
  }
  if (!request.uses_liveness) text += " --no-liveness";
  return text + fmt::format(" --align {} -o {}", align_bytes, options.plan.value_or("plan.json"));
}

Result<Done> CheckAlignment(const TensorGraph& graph, const Plan& plan, const Backend& backend,
                            const ExecOptions& options) {
  const std::optional<Misfit> misfit = FirstMisfit(graph, backend.alignment());
  if (!misfit) return Done{};
  // Both powers of two, so that the larger one serves both.
  const int64_t align = std::max(backend.alignment(), plan.request.align_bytes);
  return Error{
      ErrorCode::kUsage,
      fmt::format("\"{}\" has {} bytes, but buffers of the {} backend begin at multiples "
                  "of {}; plan again with --align {}",
                  misfit->what, misfit->bytes.count(), backend.name(), backend.alignment(), align),
      {PlanAgainCommand(plan, align, options)}};
}

}  // namespace ckplan
