// A plan with what follows from it step by step: what lives when, until when, and who reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/explain/planned_graph.h"
#include "lib/plan/constraints.h"
#include "lib/plan/plan.h"
#include "lib/schedule/memory_curve.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

struct TracedPlan {
  const PlannedGraph& graph;
  const Plan& plan;
  Timeline timeline;
  // Of the timeline's versions:
  std::vector<MemoryKind> kinds;
  std::vector<int32_t> until;               // The last step at which it is in memory.
  std::vector<std::vector<int32_t>> reads;  // The steps that read it, ascending.
  // The versions in the memory of a tensor, its own and those of its aliases, in order of making;
  // empty for tensors that are aliases themselves.
  IdVector<TensorId, std::vector<int32_t>> versions_in;
  // Of steps: whether the step's node has run before.
  std::vector<bool> has_run;
  std::optional<Constraints> constraints;  // Of the plan's request; none if there are none.

  const Version& version(int32_t index) const {
    return timeline.versions[static_cast<size_t>(index)];
  }
  const std::vector<Step>& steps() const { return plan.schedule.steps; }
  // By the graph and by the constraints.
  bool MayRunAgain(NodeId node) const {
    return graph.MayRunAgain(node) && !(constraints && constraints->runs_once[node]);
  }
  // "backward of conv1"; empty for a plan without steps.
  std::string NameOfStep(size_t step) const;
};

// Refers to both. `plan` must be a valid plan of the graph. O(reads of all steps).
TracedPlan TracePlan(const PlannedGraph& graph, const Plan& plan);

}  // namespace ckplan
