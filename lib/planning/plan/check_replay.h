// The two replays of the checker (check.h), one for each form of a training step, and what they
// find. They implement the meaning of lib/problem/schedule/replay.h a second time, without regard
// to speed, and lay memory out by the plan's own offsets. They share no code with lib/schedule.
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
  bool is_order_free = false;  // Backward steps need not mirror the forward ones.
  const Link* link = nullptr;  // Null if nothing may be moved to the host.
  // The offsets of the buffers. If null, overlaps are not checked.
  const std::vector<Bytes>* offsets = nullptr;
  int64_t alignment = 1;
};

struct Replayed {
  Slab slab;
  int32_t peak_step = 0;
  Cost overhead;  // With transfers, of the makespan.
  Bytes saved;    // Memory after the loss and the frees that follow it, without gradients.
  bool is_own_order = false;                 // First runs come in the order of the graph.
  IdVector<NodeId, NodeDecision> decisions;  // Without segments.
  Moves moves = {};                          // Only in a joint graph.
};

// Replays steps one at a time. kCheckFailed: the first fault, since later ones may follow from it.
// O(n log n) for n reads and writes of all steps.
Result<Replayed> ReplayNodes(const TensorGraph& graph, const Schedule& schedule,
                             const ReplayOptions& options);
Result<Replayed> ReplayRuns(const JointGraph& graph, const Schedule& schedule,
                            const ReplayOptions& options);

// The figures that follow from the graph alone, added up a second time.
struct GraphFigures {
  ConstantMemory constants;
  Optimized optimized;  // Gradients of parameters that optimizers keep state for.
  Cost forward_cost;
  Cost backward_cost;
  Cost least_overhead;  // Below zero if no result needs some operations.
};
GraphFigures FiguresOf(const TensorGraph& graph);
GraphFigures FiguresOf(const JointGraph& graph);

}  // namespace ckplan
