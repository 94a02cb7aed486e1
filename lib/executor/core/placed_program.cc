#include "lib/executor/core/placed_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/backward_order.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

namespace {

bool HasWorkspaces(const TensorGraph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.forward_workspace > Bytes(0) || node.backward_workspace > Bytes(0);
  });
}

Error OtherWorkspace(const Node& planned, const OpWorkspace& real) {
  return MakeError(
      ErrorCode::kCheckFailed,
      fmt::format("the plan's costs give \"{}\" a workspace of {} + {} bytes (forward, backward), "
                  "but here it needs {} + {}; profile again with this backend and as many threads, "
                  "and plan with those costs",
                  planned.name, planned.forward_workspace.count(),
                  planned.backward_workspace.count(), real.forward, real.backward));
}

Error NotRunnable(const Error& why) {
  return MakeError(ErrorCode::kCheckFailed,
                   fmt::format("the plan cannot be run: {}; plan it again", why.message));
}

// Places a plan of the graph's expansion.
Result<PlacedProgram> PlaceTransfers(const StepGraph& step, const SizedGraph& run,
                                     const Plan& plan) {
  const Expansion expansion = ExpandTensorGraph(run.graph);
  const Link& link = *plan.request.offload;
  const TrainingStep joint =
      TrainingStep(expansion.graph, run.graph, expansion.step_of).WithLink(&link);
  const auto replayed = Simulator(joint).Run(plan.schedule);
  if (!replayed.ok()) return NotRunnable(replayed.error());
  CKPLAN_ASSIGN_OR_RETURN(const Schedule forward,
                          InForwardForm(run.graph, expansion, plan.schedule));
  PlacedProgram ready = PlaceProgram(step, run, forward);
  ready.is_half_duplex = link.duplex == Duplex::kHalf;
  if (run.has_planned_sizes) {
    ready.predicted_peak = plan.figures.peak;
    ready.host_offsets = plan.host_offsets;
    ready.host_bytes = plan.figures.offload->host_arena;
    ready.predicted_host_peak = plan.figures.offload->host_peak;
  }
  return ready;
}

}  // namespace

PlannedWorkspaces WorkspacesOf(const Plan& plan) {
  const bool is_measured = plan.request.cost_model == "file" || !plan.request.workspaces.empty();
  return is_measured ? PlannedWorkspaces::kMeasured : PlannedWorkspaces::kTemporaries;
}

Result<SizedGraph> GraphToRun(const StepGraph& step, const StepOperators& operators,
                              const TensorGraph& planned, PlannedWorkspaces workspaces,
                              int64_t align_bytes) {
  SizedGraph run{step.graph};
  run.has_workspaces = workspaces == PlannedWorkspaces::kMeasured && HasWorkspaces(planned);
  if (run.has_workspaces) {
    for (const NodeId id : planned.nodes().ids()) {
      const Node& node = planned.node(id);
      const OpWorkspace& real = operators.workspaces[id];
      if (node.forward_workspace.count() != real.forward ||
          node.backward_workspace.count() != real.backward) {
        return OtherWorkspace(node, real);
      }
    }
    CKPLAN_ASSIGN_OR_RETURN(run.graph, GraphWithWorkspaces(step, operators));
  }
  for (const TensorId id : planned.tensors().ids()) {
    run.has_planned_sizes =
        run.has_planned_sizes && planned.tensor(id).bytes == run.graph.tensor(id).bytes;
  }
  if (align_bytes > 1) {
    CKPLAN_ASSIGN_OR_RETURN(run.graph, AlignSizes(run.graph, align_bytes));
  }
  return run;
}

PlacedProgram PlaceProgram(const StepGraph& step, const SizedGraph& run, const Schedule& schedule) {
  PlacedProgram ready;
  const Timeline timeline = BuildTimeline(run.graph, schedule);
  ready.program = BuildProgram(step, run.graph, schedule, timeline);
  ready.predicted_peak = timeline.peak;
  ready.has_workspaces = run.has_workspaces;
  Arena arena = PlaceBuffers(timeline);
  ready.offsets = std::move(arena.offsets);
  ready.arena_bytes = arena.bytes;
  HostArena host = PlaceOnHost(ready.program.copies);
  ready.host_offsets = std::move(host.offsets);
  ready.host_bytes = host.bytes;
  ready.predicted_host_peak = HostPeakOf(ready.program.copies);
  return ready;
}

Result<PlacedProgram> PlaceByPlan(const StepGraph& step, const SizedGraph& run, const Plan& plan) {
  if (plan.request.offload) return PlaceTransfers(step, run, plan);
  const auto replayed = Simulator(run.graph).Run(plan.schedule);
  if (!replayed.ok()) return NotRunnable(replayed.error());
  PlacedProgram ready = PlaceProgram(step, run, plan.schedule);
  if (run.has_planned_sizes) {
    ready.offsets = plan.offsets;
    ready.arena_bytes = plan.figures.arena;
    ready.predicted_peak = plan.figures.peak;
  }
  return ready;
}

PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Schedule& planned) {
  return PlaceProgram(step, run, KeepAllSchedule(ForwardOrderOfSameGradients(run.graph, planned)));
}

PlacedProgram PlaceKeepAll(const StepGraph& step, const SizedGraph& run, const Plan& plan) {
  if (!plan.request.offload) return PlaceKeepAll(step, run, plan.schedule);
  return PlaceProgram(step, run, KeepAllInOwnOrder(run.graph));
}

Result<std::unique_ptr<ArenaMemory>> ArenaFor(Backend& backend, const PlacedProgram& placed,
                                              bool poisons) {
  CKPLAN_ASSIGN_OR_RETURN(auto arena, ArenaMemory::Create(backend, placed.program, placed.offsets,
                                                          placed.arena_bytes, poisons));
  if (placed.program.copies.empty()) return arena;
  const HostCopiesOptions options{{placed.is_half_duplex, poisons}, poisons};
  CKPLAN_ASSIGN_OR_RETURN(
      auto host,
      HostCopies::InSlab(backend, placed.program, placed.host_offsets, placed.host_bytes, options));
  arena->UseHost(std::move(host));
  return arena;
}

Bytes LargestWorkspace(const StepOperators& operators) {
  int64_t largest = 0;
  for (const OpWorkspace& workspace : operators.workspaces) {
    largest = std::max({largest, workspace.forward, workspace.backward});
  }
  return Bytes(largest);
}

}  // namespace ckplan
