#include "lib/plan/assemble_joint.h"

#include <algorithm>
#include <utility>

#include "lib/joint/run_timeline.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/assemble.h"
#include "lib/schedule/arena.h"

namespace ckplan {
namespace {

IdVector<NodeId, NodeDecision> Decide(const JointGraph& graph, std::span<const OpId> runs) {
  IdVector<OpId, int32_t> run_count(graph.ops().size());
  for (const OpId id : runs) ++run_count[id];
  IdVector<NodeId, NodeDecision> decisions;
  for (const int32_t count : run_count) {
    const NodeAction action = count == 0   ? NodeAction::kDrop
                              : count == 1 ? NodeAction::kKeep
                                           : NodeAction::kRecompute;
    decisions.push_back({action, 0, std::max(0, count - 1)});
  }
  return decisions;
}

}  // namespace

Plan AssembleJointPlan(const JointGraph& graph, std::span<const OpId> runs) {
  const RunSimulation simulation = RunSimulator(graph).Run(runs).value();
  const Timeline timeline = BuildRunTimeline(graph, runs);
  CKPLAN_CHECK(timeline.peak == simulation.peak, "the timeline and the simulator are one model");
  Arena arena = PlaceTightly(timeline);

  Plan plan;
  plan.figures.peak = simulation.peak;
  plan.figures.baseline_peak = OwnOrderPeak(graph);
  plan.figures.arena = arena.bytes;
  plan.figures.overhead = simulation.cost - graph.cost();
  if (plan.figures.overhead == LeastOverhead(graph)) {
    plan.figures.lower_bound_cost = plan.figures.overhead;
  }
  plan.figures.forward_cost = PhaseCost(graph, Phase::kForward);
  plan.figures.backward_cost = PhaseCost(graph, Phase::kBackward);
  plan.figures.constants = JointConstants(graph);
  plan.figures.paper = {std::nullopt, plan.figures.peak, plan.figures.overhead};
  plan.decisions = Decide(graph, runs);
  plan.labels = LabelsOf(graph);
  for (const OpId id : runs) plan.schedule.steps.push_back(Step::Run(id));
  plan.peak = PeakMomentOf(timeline);
  plan.offsets = std::move(arena.offsets);
  return plan;
}

ConstantMemory JointConstants(const JointGraph& graph) {
  ConstantMemory constants;
  for (const Value& value : graph.values()) {
    if (!value.alias_of.is_none()) continue;
    if (value.kind == ValueKind::kParameterGradient) {
      constants.parameter_gradients += value.bytes;
    } else if (value.kind == ValueKind::kParameter) {
      constants.parameters += value.bytes;
    } else if (value.kind == ValueKind::kConstant || value.maker.is_none()) {
      constants.inputs += value.bytes;
    }
  }
  return constants;
}

Bytes ParameterGradientBytes(const JointGraph& graph) {
  Bytes bytes;
  for (const Value& value : graph.values()) {
    const bool is_gradient =
        value.kind == ValueKind::kParameterGradient || value.kind == ValueKind::kArrivingGradient;
    if (is_gradient && value.alias_of.is_none()) bytes += value.bytes;
  }
  return bytes;
}

Cost LeastOverhead(const JointGraph& graph) {
  IdVector<OpId, bool> is_needed(graph.ops().size());
  Cost dropped;
  for (size_t i = graph.ops().size(); i-- > 0;) {
    const OpId id(i);
    is_needed[id] = is_needed[id] || graph.is_needed(id);
    if (!is_needed[id]) {
      dropped += graph.op(id).cost;
      continue;
    }
    for (const ValueId read : graph.op(id).reads) {
      const OpId maker = graph.value(read).maker;
      if (!maker.is_none()) is_needed[maker] = true;
    }
  }
  return Cost(0) - dropped;
}

Cost PhaseCost(const JointGraph& graph, Phase phase) {
  Cost cost;
  for (const Operation& op : graph.ops()) {
    if (op.phase == phase) cost += op.cost;
  }
  return cost;
}

std::vector<OpId> RunsOf(const Schedule& schedule) {
  std::vector<OpId> runs;
  runs.reserve(schedule.steps.size());
  for (const Step& step : schedule.steps) runs.push_back(step.node());
  return runs;
}

}  // namespace ckplan
