#include "lib/problem/schedule/backward_order.h"

#include <algorithm>
#include <map>

namespace ckplan {
namespace {

IdVector<NodeId, bool> FindReached(const TensorGraph& graph) {
  IdVector<TensorId, bool> is_output(graph.tensors().size());
  for (const TensorId output : graph.outputs()) is_output[output] = true;
  IdVector<NodeId, bool> is_reached(graph.nodes().size());
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const NodeId id(n);
    const std::vector<TensorId>& outputs = graph.node(id).outputs;
    is_reached[id] = std::any_of(outputs.begin(), outputs.end(), [&](TensorId output) {
      const Tensor& tensor = graph.tensor(output);
      const bool is_contributed_to =
          is_output[output] || std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                                           [&](NodeId consumer) { return is_reached[consumer]; });
      return tensor.requires_grad && is_contributed_to;
    });
  }
  return is_reached;
}

}  // namespace

bool IsMirrored(const Schedule& schedule) {
  const std::vector<NodeId> order = ForwardOrder(schedule);
  size_t first_runs = 0;
  size_t backward = order.size();
  bool has_loss = false;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kForward && first_runs < order.size() &&
        step.node() == order[first_runs]) {
      if (has_loss) return false;
      ++first_runs;
    }
    has_loss |= step.kind == StepKind::kLoss;
    if (step.kind != StepKind::kBackward) continue;
    if (backward == 0 || order[--backward] != step.node()) return false;
  }
  return true;
}

std::vector<NodeId> ForwardOrderOfSameGradients(const TensorGraph& graph,
                                                const Schedule& schedule) {
  if (IsMirrored(schedule)) return ForwardOrder(schedule);
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

BackwardPrecedence::BackwardPrecedence(const TensorGraph& graph)
    : is_reached(FindReached(graph)), after(graph.nodes().size()) {
  for (const Tensor& tensor : graph.tensors()) {
    if (!tensor.requires_grad) continue;
    NodeId last;
    for (auto it = tensor.consumers.rbegin(); it != tensor.consumers.rend(); ++it) {
      if (!is_reached[*it]) continue;
      if (!last.is_none()) after[*it].push_back(last);
      last = *it;
    }
    if (!last.is_none() && !tensor.producer.is_none()) after[tensor.producer].push_back(last);
  }
  std::map<int32_t, NodeId> last_trainer;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const NodeId id(n);
    if (!is_reached[id]) continue;
    for (const int32_t parameter : graph.node(id).shared_parameters) {
      const auto [last, is_first] = last_trainer.try_emplace(parameter, id);
      if (!is_first) after[id].push_back(last->second);
      last->second = id;
    }
  }
}

}  // namespace ckplan
