#include "lib/planning/plan/assemble.h"

#include <algorithm>
#include <utility>

#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/static_allocation.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

// Derives each operation's decision from the runs of a joint graph.
IdVector<NodeId, NodeDecision> DecisionsOf(const JointGraph& graph, const Schedule& schedule) {
  IdVector<OpId, int32_t> run_count(graph.ops().size());
  for (const OpId run : RunsOf(schedule)) ++run_count[run];
  IdVector<NodeId, NodeDecision> decisions;
  for (const int32_t count : run_count) {
    const NodeAction action = count == 0   ? NodeAction::kDrop
                              : count == 1 ? NodeAction::kKeep
                                           : NodeAction::kRecompute;
    decisions.push_back({action, 0, std::max(0, count - 1)});
  }
  return decisions;
}

void AddOffload(const TrainingStep& step, const Schedule& schedule, const Simulation& simulation,
                Plan* plan) {
  const Transfers transfers = TransfersOf(step, schedule);
  HostArena arena = PlaceOnHost(transfers.host);
  plan->figures.offload = {simulation.host_peak, arena.bytes, simulation.stall,
                           simulation.transferred};
  plan->host_offsets = std::move(arena.offsets);
}

StaticAllocations StaticAllocationsOf(const TensorGraph& graph, const Schedule& schedule) {
  return {StaticAllocation(graph, schedule, ArenaStrategy::kNone),
          StaticAllocation(graph, schedule, ArenaStrategy::kInplace),
          StaticAllocation(graph, schedule, ArenaStrategy::kSharing)};
}

}  // namespace

IdVector<NodeId, NodeDecision> DecisionsOf(const TensorGraph& graph, const Timeline& timeline,
                                           const IdVector<NodeId, int32_t>& segment_of) {
  IdVector<NodeId, NodeDecision> decisions(graph.nodes().size(), {NodeAction::kTransient, 0, -1});
  const auto loss = static_cast<int32_t>(timeline.loss_step);
  for (const Version& version : timeline.versions) {
    const NodeId producer = graph.tensor(version.tensor).producer;
    NodeDecision& decision = decisions[producer];
    // Each run creates a version of every output, so versions of the first output count the runs.
    if (version.tensor == graph.node(producer).outputs.front()) ++decision.recompute_count;
    if (version.made_at < loss && version.last_read > loss) decision.action = NodeAction::kKeep;
  }
  for (const NodeId id : graph.nodes().ids()) {
    decisions[id].segment = segment_of[id];
    if (decisions[id].recompute_count > 0) decisions[id].action = NodeAction::kRecompute;
  }
  return decisions;
}

PeakMoment PeakMomentOf(const Timeline& timeline) {
  PeakMoment peak{static_cast<int32_t>(timeline.peak_step), {}};
  for (const PeakBuffer& live : FindPeakBuffers(timeline)) {
    const Buffer& buffer = timeline.buffers[static_cast<size_t>(live.buffer)];
    if (buffer.kind == BufferKind::kWorkspace) {
      peak.live.push_back(LiveBuffer::Workspace(buffer.node, buffer.bytes));
    } else if (buffer.kind == BufferKind::kGradient) {
      peak.live.push_back(LiveBuffer::Gradient(buffer.tensor, buffer.bytes));
    } else {
      const Version& version = timeline.versions[static_cast<size_t>(live.version)];
      peak.live.push_back(LiveBuffer::Tensor(version.tensor, buffer.bytes));
    }
  }
  return peak;
}

Plan AssemblePlan(const TrainingStep& step, const Schedule& schedule,
                  IdVector<NodeId, int32_t> segment_of, Arena (*place)(const Timeline& timeline)) {
  const Simulation simulation = Simulator(step).Run(schedule).value();
  const Timeline timeline = BuildTimeline(step, schedule);
  CKPLAN_CHECK(timeline.peak + simulation.other_micro_batches == simulation.peak,
               "the timeline and the simulator have one peak");
  Arena arena = place(timeline);

  Plan plan;
  plan.figures.peak = simulation.peak;
  plan.figures.other_micro_batches = simulation.other_micro_batches;
  plan.figures.baseline_peak = KeepAllPeak(step);
  plan.figures.arena = arena.bytes;
  plan.figures.overhead = simulation.overhead;
  if (simulation.overhead == step.MinOverhead()) {
    plan.figures.lower_bound_cost = simulation.overhead;
  }
  plan.figures.forward_cost = step.forward_cost();
  plan.figures.backward_cost = step.backward_cost();
  plan.figures.constants = step.constants();
  plan.figures.paper = {std::nullopt, simulation.peak, simulation.overhead};
  if (step.is_joint()) {
    plan.decisions = DecisionsOf(step.joint(), schedule);
  } else {
    segment_of.resize(step.node_count());
    plan.decisions = DecisionsOf(step.forward(), timeline, segment_of);
    plan.figures.static_allocations = StaticAllocationsOf(step.forward(), schedule);
  }
  if (step.link() != nullptr) AddOffload(step, schedule, simulation, &plan);
  plan.labels = LabelsOf(step);
  plan.schedule = schedule;
  plan.peak = PeakMomentOf(timeline);
  plan.offsets = std::move(arena.offsets);
  return plan;
}

Plan AssembleRuns(const TrainingStep& step, std::span<const OpId> runs) {
  return AssemblePlan(step, ScheduleOfRuns(runs), {}, PlaceTightly);
}

}  // namespace ckplan
