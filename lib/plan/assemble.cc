#include "lib/plan/assemble.h"

#include <utility>

#include "lib/schedule/peak.h"
#include "lib/schedule/simulate.h"
#include "lib/schedule/static_allocation.h"
#include "lib/schedule/timeline.h"

namespace ckplan {
IdVector<NodeId, NodeDecision> DecisionsOf(const TensorGraph& graph, const Timeline& timeline,
                                           const IdVector<NodeId, int32_t>& segment_of) {
  IdVector<NodeId, NodeDecision> decisions(graph.nodes().size(), {NodeAction::kTransient, 0, -1});
  const auto loss = static_cast<int32_t>(timeline.loss_step);
  for (const Version& version : timeline.versions) {
    const NodeId producer = graph.tensor(version.tensor).producer;
    NodeDecision& decision = decisions[producer];
    // A run makes a version of every output of the node; versions of the first one count the runs.
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

Plan AssemblePlan(const TensorGraph& graph, const Schedule& schedule,
                  IdVector<NodeId, int32_t> segment_of, Arena (*place)(const Timeline& timeline)) {
  Simulator simulator(graph);
  const Simulation simulation = simulator.Run(schedule).value();
  const Timeline timeline = BuildTimeline(graph, schedule);
  CKPLAN_CHECK(timeline.peak + simulation.other_micro_batches == simulation.peak,
               "the timeline and the simulator are one model");
  Arena arena = place(timeline);

  Plan plan;
  plan.figures.peak = simulation.peak;
  plan.figures.other_micro_batches = simulation.other_micro_batches;
  plan.figures.baseline_peak = KeepAllPeak(graph);
  plan.figures.arena = arena.bytes;
  plan.figures.static_allocations = {StaticAllocation(graph, schedule, ArenaStrategy::kNone),
                                     StaticAllocation(graph, schedule, ArenaStrategy::kInplace),
                                     StaticAllocation(graph, schedule, ArenaStrategy::kSharing)};
  plan.figures.overhead = simulation.overhead;
  if (simulation.overhead == Cost(0)) plan.figures.lower_bound_cost = Cost(0);
  plan.figures.forward_cost = graph.forward_cost();
  plan.figures.backward_cost = graph.backward_cost();
  plan.figures.constants = graph.constants();
  plan.decisions = DecisionsOf(graph, timeline, segment_of);
  plan.labels = LabelsOf(graph);
  plan.schedule = schedule;
  plan.peak = PeakMomentOf(timeline);
  plan.offsets = std::move(arena.offsets);
  return plan;
}

}  // namespace ckplan
