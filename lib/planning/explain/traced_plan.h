// A plan with step-by-step details: when each version is in memory and which steps read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
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
  // The versions in a tensor's memory, its own and its aliases', in order of creation. Empty for
  // aliases.
  IdVector<TensorId, std::vector<int32_t>> versions_in;
  // For each step, true if its node has run before.
  std::vector<bool> has_run;
  std::optional<Constraints> constraints;  // The constraints of the plan's request, if any.

  const Version& version(int32_t index) const {
    return timeline.versions[static_cast<size_t>(index)];
  }
  const std::vector<Step>& steps() const { return plan.schedule.steps; }
  // True if the graph and the constraints allow it.
  bool CanRerun(NodeId node) const {
    return graph.CanRerun(node) && !(constraints && constraints->runs_once[node]);
  }
  // Names the kind. Results of a joint graph's backward operations are "backward", because not all
  // of them are gradients.
  std::string_view NameOfKind(MemoryKind kind) const;
  // Describes a step: "backward of conv1". Empty for a plan without steps.
  std::string NameOfStep(size_t step) const;
};

// The result refers to both arguments. `plan` must be valid for the graph. O(reads of all steps).
TracedPlan TracePlan(const TrainingStep& graph, const Plan& plan);

// What a plan's summary shows besides the plan's own figures: the memory in use at the peak, and
// the recomputed nodes.

// A group of recomputed nodes: a segment's or, in a plan without segments, an operator's.
struct RecomputedGroup {
  std::string name;  // "conv1 ... relu3", or "Relu"
  int64_t node_count = 0;
  // Size of the recomputed outputs. The peak falls by a different amount.
  Bytes outputs;
  Cost overhead;
};

struct PlanFacts {
  std::string peak_step;  // "backward of conv1"
  int64_t kept_tensors = 0;
  // The memory in use when the peak is first reached. The six add up to the peak.
  Bytes kept;
  Bytes recomputed;
  Bytes passing;  // Forward results that backward does not read.
  Bytes gradients;
  Bytes workspace;
  Bytes loaded;  // Results copied back from the host.

  int64_t run_twice = 0;  // Number of nodes that run forward twice.
  int64_t run_more_often = 0;
  int64_t dropped = 0;                  // Number of operations of a joint graph that never run.
  std::vector<RecomputedGroup> groups;  // Largest first.
};

// In a joint graph's plan, results of the first runs of backward operations count as gradients.
PlanFacts FactsOf(const TrainingStep& step, const Plan& plan);

}  // namespace ckplan
