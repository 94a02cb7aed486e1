// What a plan's summary shows in addition to the plan's own figures: the memory in use at the peak,
// and the nodes that are recomputed.
#pragma once

#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

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
