// A plan with what follows from it step by step: which versions live when, and which steps read
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/memory_curve.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct TracedPlan {
  TrainingStep graph;
  const Plan& plan;
  Timeline timeline;
  // Indexed by the timeline's versions:
  std::vector<MemoryKind> kinds;
  std::vector<int32_t> until;               // The last step at which the version is in memory.
  std::vector<std::vector<int32_t>> reads;  // The steps that read the version, ascending.
  // The versions in the memory of a tensor, its own and those of its aliases, in order of making.
  // Empty for tensors that are aliases.
  IdVector<TensorId, std::vector<int32_t>> versions_in;
  // For each step, whether its node has run before.
  std::vector<bool> has_run;
  std::optional<Constraints> constraints;  // The constraints of the plan's request, if it has any.

  const Version& version(int32_t index) const {
    return timeline.versions[static_cast<size_t>(index)];
  }
  const std::vector<Step>& steps() const { return plan.schedule.steps; }
  // Whether the graph and the constraints allow it.
  bool MayRunAgain(NodeId node) const {
    return graph.MayRunAgain(node) && !(constraints && constraints->runs_once[node]);
  }
  // The kind in words; the results of a joint graph's backward operations are "backward", for not
  // all of them are gradients.
  std::string_view NameOfKind(MemoryKind kind) const;
  // Describes a step: "backward of conv1". Empty for a plan without steps.
  std::string NameOfStep(size_t step) const;
};

// The result refers to both arguments. `plan` must be a valid plan of the graph. O(reads of all
// steps).
TracedPlan TracePlan(const TrainingStep& graph, const Plan& plan);

}  // namespace ckplan
