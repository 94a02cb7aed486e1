// What a plan's summary says beyond the plan's own figures: what is in memory at the peak, and what
// is recomputed.
#pragma once

#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// Nodes that are recomputed: those of one segment, or, for a plan without segments, of one
// operator.
struct RecomputedGroup {
  std::string name;  // "conv1 ... relu3", or "Relu"
  int64_t node_count = 0;
  Bytes not_kept;  // Bytes of their outputs that are not kept.
  Cost overhead;
};

struct PlanFacts {
  std::string peak_step;  // "backward of conv1"
  int64_t kept_tensors = 0;
  // At the first moment of the peak; together the peak.
  Bytes kept;
  Bytes recomputed;
  Bytes passing;  // Forward results that no backward step will read from there.
  Bytes gradients;
  Bytes workspace;

  int64_t run_twice = 0;  // Nodes.
  int64_t run_more_often = 0;
  std::vector<RecomputedGroup> groups;  // Largest first.
};

PlanFacts FactsOf(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
