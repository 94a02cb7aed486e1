#include "lib/problem/schedule/schedule.h"

#include <algorithm>

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

}  // namespace ckplan
