#include "lib/executor/core/profile.h"

#include "lib/executor/core/placed_program.h"
#include "lib/executor/core/runner.h"
#include "lib/executor/core/stopwatch.h"

namespace ckplan {

namespace {

struct Samples {
  std::vector<double> forward;
  std::vector<double> backward;
};

}  // namespace

Result<std::vector<ProfiledNode>> ProfileNodes(Backend& backend, const StepGraph& step,
                                               const StepOperators& operators,
                                               ConstantStore& constants,
                                               const ProfileOptions& options) {
  SizedGraph run{step.graph};
  CKPLAN_ASSIGN_OR_RETURN(run.graph, GraphWithWorkspaces(step, operators));
  CKPLAN_ASSIGN_OR_RETURN(run.graph, AlignSizes(run.graph, BufferAlignment(backend)));
  run.has_workspaces = true;
  const PlacedProgram plan = PlaceKeepAll(step, run, KeepAllInOwnOrder(step.graph));
  CKPLAN_ASSIGN_OR_RETURN(const auto arena, ArenaMemory::Create(backend, plan.program, plan.offsets,
                                                                plan.arena_bytes, false));
  arena->Touch();
  const Loss loss(LossKind::kGiven, options.seed);
  Runner runner(backend, step, operators, constants, loss, options.seed, nullptr);
  IdVector<NodeId, Samples> samples(step.graph.nodes().size());
  for (int i = 0; i <= options.runs; ++i) {
    Stopwatch watch(backend, step);
    CKPLAN_RETURN_IF_ERROR(runner.Run(plan.program, *arena, &watch));
    if (i == 0) continue;
    const SecondsOfNodes seconds = watch.Read();
    for (const NodeId id : samples.ids()) {
      samples[id].forward.push_back(seconds[id].forward);
      samples[id].backward.push_back(seconds[id].backward);
    }
  }
  std::vector<ProfiledNode> nodes;
  for (const NodeId id : samples.ids()) {
    nodes.push_back({step.graph.node(id).name, Median(samples[id].forward),
                     Median(samples[id].backward), operators.workspaces[id]});
  }
  return nodes;
}

}  // namespace ckplan
