// The checker's (check.h) two replays, one for each form of a training step, and their results. An
// independent, simple implementation of lib/problem/schedule/replay.h that lays out memory by the
// plan's own offsets.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/check_moves.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/slab.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

struct ReplayOptions {
  bool is_order_free = false;  // Backward need not be the reverse of forward.
  const Link* link = nullptr;  // Null if the plan may not move values to the host.
  // The buffers' offsets. If null, overlaps are not checked.
  const std::vector<Bytes>* offsets = nullptr;
  int64_t alignment = 1;
};

struct Replayed {
  Slab slab;
  int32_t peak_step = 0;
  Cost overhead;  // With transfers, from the makespan.
  Bytes saved;    // Memory after the loss and the frees that follow it, without gradients.
  bool is_own_order = false;                 // First runs are in the graph's order.
  IdVector<NodeId, NodeDecision> decisions;  // Without segments.
  Moves moves = {};                          // Only for joint graphs.
};

// Replays steps one at a time. Fails with kCheckFailed on the first fault, because later faults may
// follow from it. O(n log n) for n reads and writes in all steps.
Result<Replayed> ReplayNodes(const TensorGraph& graph, const Schedule& schedule,
                             const ReplayOptions& options);
Result<Replayed> ReplayRuns(const JointGraph& graph, const Schedule& schedule,
                            const ReplayOptions& options);

// Figures that depend only on the graph, computed independently of the planner.
struct GraphFigures {
  ConstantMemory constants;
  Optimized optimized;  // Gradients of trained parameters.
  Cost forward_cost;
  Cost backward_cost;
  Cost least_overhead;  // Negative if some operations are needed by no result.
};
GraphFigures FiguresOf(const TensorGraph& graph);
GraphFigures FiguresOf(const JointGraph& graph);

}  // namespace ckplan
