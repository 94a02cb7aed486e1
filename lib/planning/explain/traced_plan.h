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

// What a plan's summary shows in addition to the plan's own figures: the memory in use at the peak,
// and the nodes that are recomputed.

// A group of recomputed nodes: those of one segment or, in a plan without segments, those of one
// operator.
struct RecomputedGroup {
  std::string name;  // "conv1 ... relu3", or "Relu"
  int64_t node_count = 0;
  // Size of the outputs that the nodes compute again. The peak falls by another amount.
  Bytes outputs;
  Cost overhead;
};

struct PlanFacts {
  std::string peak_step;  // "backward of conv1"
  int64_t kept_tensors = 0;
  // The memory in use when the peak is first reached; the six add up to the peak.
  Bytes kept;
  Bytes recomputed;
  Bytes passing;  // Forward results that no backward step will read before they are released.
  Bytes gradients;
  Bytes workspace;
  Bytes loaded;  // Results that were copied back from the host.

  int64_t run_twice = 0;  // Number of nodes that run forward twice.
  int64_t run_more_often = 0;
  int64_t dropped = 0;                  // Number of operations of a joint graph that never run.
  std::vector<RecomputedGroup> groups;  // Largest first.
};

// In a joint graph's plan, what backward operations make in their first runs counts as gradients.
PlanFacts FactsOf(const TrainingStep& step, const Plan& plan);

}  // namespace ckplan
