#include "lib/testing/plans/random_planned.h"

#include <utility>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_moves.h"

namespace ckplan {
namespace {

// Keeps each node with a probability of 60 %.
Plan RandomKeptPlan(Rng& rng, const TensorGraph& graph) {
  IdVector<NodeId, bool> is_kept;
  for (size_t i = 0; i < graph.nodes().size(); ++i) is_kept.push_back(rng.Chance(60));
  return PlanOfKept(graph, std::move(is_kept));
}

}  // namespace

Plan PlanOfKept(const TensorGraph& graph, IdVector<NodeId, bool> is_kept) {
  const Schedule schedule = LowerStrategy(graph, KeptSet{std::move(is_kept)});
  return AssemblePlan(graph, schedule, IdVector<NodeId, int32_t>(graph.nodes().size(), 0));
}

Plan KeepAllPlan(const TensorGraph& graph) {
  return PlanOfKept(graph, IdVector<NodeId, bool>(graph.nodes().size(), true));
}

RandomPlanned::RandomPlanned(uint64_t seed) {
  Rng rng(seed);
  if (rng.Chance(50)) {
    joint = std::make_unique<JointGraph>(RandomJointGraph(rng));
    plan = AssembleRuns(*joint, RandomRuns(rng, *joint));
    graph.emplace(*joint);
  } else {
    forward = std::make_unique<TensorGraph>(RandomTensorGraph(rng));
    plan = RandomKeptPlan(rng, *forward);
    graph.emplace(*forward);
  }
}

RandomMoved::RandomMoved(uint64_t seed) {
  Rng rng(seed);
  while (true) {
    graph.emplace(RandomJointGraph(rng));
    link = RandomLink(rng);
    step.emplace(TrainingStep(*graph).WithLink(&link));
    const Schedule schedule = RandomMoves(rng, *graph);
    if (!HasTransfers(schedule) || !Simulator(*step).Run(schedule).ok()) continue;
    plan = AssemblePlan(*step, schedule);
    plan.request.offload = link;
    return;
  }
}

}  // namespace ckplan
