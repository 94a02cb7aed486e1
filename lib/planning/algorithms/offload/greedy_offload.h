// Greedy offloading, as frameworks do it: one rule chooses the values to copy to the host, and what
// still doesn't fit is recomputed.
//
//   earliest   the values computed first. Transformer Engine and Megatron offload the first layers,
//              because the last ones are needed again too soon.
//   largest    the largest values, because each copy has a latency. Most implementations only
//              offload values above some size.
//   costliest  the values that take the most time per byte to compute, as in the greedy policy of
//              torchtitan's pull request 4636; cheap ones are recomputed.
//
// Idea. A moment is where the graph's own order needs the most memory. Of the values that cross it,
// the rule offloads as many as the link can carry between the start of the step and the moment, but
// no more than needed to fit. Then other values are dropped, those that take the least time per
// byte to compute first, until the peak is within the limit. Copies start by the rules of
// lib/problem/runs/copy_schedule.h.
//
// Guarantee  none; runs may wait for copies. lib/planning/algorithms/best decides on copies and
//            reruns together.
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
