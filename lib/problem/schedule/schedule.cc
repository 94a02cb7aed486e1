#include "lib/problem/schedule/schedule.h"

#include <algorithm>
#include <map>

namespace ckplan {

Schedule KeepAllSchedule(const std::vector<NodeId>& order) {
  Schedule schedule;
  schedule.steps.reserve(2 * order.size() + 1);
  for (const NodeId node : order) schedule.steps.push_back(Step::Forward(node));
  schedule.steps.push_back(Step::Loss());
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    schedule.steps.push_back(Step::Backward(*it));
  }
  return schedule;
}

Schedule KeepAllInOwnOrder(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return KeepAllSchedule(order);
}

std::vector<NodeId> ForwardOrder(const Schedule& schedule) {
  std::vector<NodeId> order;
  std::vector<bool> has_run;
  for (const Step& step : schedule.steps) {
    if (step.kind != StepKind::kForward) continue;
    const auto index = static_cast<size_t>(step.index);
    if (index >= has_run.size()) has_run.resize(index + 1);
    if (!has_run[index]) order.push_back(step.node());
    has_run[index] = true;
  }
  return order;
}

const std::vector<TensorId>& ReadsOf(const TensorGraph& graph, const Step& step) {
  static const std::vector<TensorId> kNothing;
  switch (step.kind) {
    case StepKind::kForward:
      return graph.node(step.node()).inputs;
    case StepKind::kBackward:
      return graph.node(step.node()).backward_reads;
    case StepKind::kLoss:
      return graph.outputs();
    case StepKind::kFree:
    case StepKind::kFreeGradient:
    case StepKind::kRun:
    case StepKind::kOut:
    case StepKind::kDrop:
    case StepKind::kIn:
      return kNothing;
  }
  return kNothing;
}

Schedule ScheduleOfRuns(std::span<const NodeId> runs) {
  Schedule schedule;
  schedule.steps.reserve(runs.size());
  for (const NodeId op : runs) schedule.steps.push_back(Step::Run(op));
  return schedule;
}

std::vector<NodeId> RunsOf(const Schedule& schedule) {
  std::vector<NodeId> runs;
  runs.reserve(schedule.steps.size());
  for (const Step& step : schedule.steps) {
    if (!step.is_transfer()) runs.push_back(step.node());
  }
  return runs;
}

bool HasTransfers(const Schedule& schedule) {
  return std::any_of(schedule.steps.begin(), schedule.steps.end(),
                     [](const Step& step) { return step.is_transfer(); });
}

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
