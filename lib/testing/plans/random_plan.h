// Random plans for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/rng.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns a moment whose buffers add up to less than 2^50 bytes.
PeakMoment RandomPeak(Rng& rng, const TensorGraph& graph);

// Returns a plan with meaningless values in all fields, for tests that writing and reading a plan
// preserve every value.
Plan RandomPlan(Rng& rng, const TensorGraph& graph);

// Returns the plan that keeps these nodes and recomputes the others.
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

// A random joint graph, and a random plan for it that moves values over a random link.
struct RandomMoved {
  explicit RandomMoved(uint64_t seed);
  RandomMoved(const RandomMoved&) = delete;
  RandomMoved& operator=(const RandomMoved&) = delete;

  std::optional<JointGraph> graph;
  Link link;
  std::optional<TrainingStep> step;
  Plan plan;
};

}  // namespace ckplan
