// Forward graphs and joint graphs with plans for them, for tests.
#pragma once

#include <memory>
#include <optional>

#include "lib/plan/plan.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// The plan that keeps these nodes, and recomputes the others.
Plan PlanOfKept(const TensorGraph& graph, IdVector<NodeId, bool> is_kept);
Plan KeepAllPlan(const TensorGraph& graph);

// A random graph of either kind and a random plan for it.
struct RandomPlanned {
  explicit RandomPlanned(uint64_t seed);

  std::unique_ptr<JointGraph> joint;
  std::unique_ptr<TensorGraph> forward;
  Plan plan;
  std::optional<TrainingStep> graph;
};

}  // namespace ckplan
