// Greedy plans that copy some values to the host, as frameworks make them: the copies are chosen
// first, by one rule, and what still does not fit is recomputed.
//
//   earliest   the values that are made first. Transformer Engine and Megatron offload layers from
//              the first on, since later ones come back too soon.
//   largest    the largest values first, since each copy has a latency. Most implementations have a
//              least size of what they offload.
//   costliest  the values first that take the most time to make per byte, as the greedy policy of
//              torchtitan's pull request 4636 ranks activations; cheap ones are recomputed.
//
// Idea. A moment is where the graph's own order needs the most memory. Of the values that cross it,
// the rule chooses as many as the link can carry between the start of the step and the moment, and
// no more than are needed to fit. Then the other values are dropped, those first that take the
// least time to make per byte, until the peak is within the limit. Copies begin by the rules of
// lib/problem/runs/copy_schedule.h.
//
// Guarantee  none; runs may wait for copies. lib/planning/algorithms/best decides on copies and
// reruns
//            together.
// Knob       the limit on the peak.
// Cost       O(log n) sequences of n runs for each limit.
#pragma once

#include <memory>

#include "lib/planning/plan/run_solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedRunSolver>> PrepareOffloadEarliest(const JointGraph& graph,
                                                                  const OffloadTerms& terms,
                                                                  const SolveLimits& limits);
Result<std::unique_ptr<PreparedRunSolver>> PrepareOffloadLargest(const JointGraph& graph,
                                                                 const OffloadTerms& terms,
                                                                 const SolveLimits& limits);
Result<std::unique_ptr<PreparedRunSolver>> PrepareOffloadCostliest(const JointGraph& graph,
                                                                   const OffloadTerms& terms,
                                                                   const SolveLimits& limits);

}  // namespace ckplan
