// Plans as torch.compile does for its setting activation_memory_budget, as far as that is publicly
// described: a minimum cut, and a knapsack over the operations that the cut may not recompute.
//
//   No paper. PyTorch's pull requests 126320 (the setting, the knapsack) and 177756 (the measures
//   of memory), and He, Yu, "Transcending Runtime-Memory Tradeoffs in Checkpointing by being
//   Fusion Aware", MLSys 2023 (the minimum cut).
//
// Idea. The setting is a share of the bytes that backward reads from the forward pass; at 100 %,
// all of them are saved. Below that
//   1. the values to save are a minimum cut, by bytes, between the inputs of the step and its
//      backward pass, such that no compute-intensive operation is recomputed: convolutions, matrix
//      products, attention. Elementwise operations and normalisations may be.
//   2. If that exceeds the share, a 0/1 knapsack chooses which results of compute-intensive
//      operations to save: their bytes fit the share, in units of 1/10,000 of all, and the cost of
//      recomputing them is as large as possible. The others may be recomputed, and the cut is made
//      once more.
// Backward runs in its own order; values that it reads and that were not saved are recomputed just
// before.
//
// Guarantee  none: the limit is on saved bytes and not on the peak. So all settings from 0 to 100
//            are tried, and a budget gets the best of those whose simulated peak is within it.
// Knob       saved, the setting in per cent: activation_memory_budget = 0.5 is saved=50. Without a
//            budget it is 100, as in PyTorch.
// Needs      operations of both phases, which a joint graph marks; up to 50,000 of them.
// Cost       a minimum cut for each different answer of the knapsack; the knapsack takes 10,000
//            steps for each compute-intensive operation, once for all settings.
// Differs    - at 100 % nothing is recomputed. PyTorch may recompute elementwise operations, which
//              its compiler fuses; costs here do not model fusion.
//            - at other settings PyTorch also has a list of cheap operations with a step of its
//              own, bans by distance, and weights that grow with the distance from backward. None
//              of these is here: among equal cuts the one nearest to backward is taken.
//            - costs are those of the graph; PyTorch counts floating-point operations by default.
//            - if no operation has a type that is known as compute-intensive, operations that cost
//              more than the average count as compute-intensive.
#pragma once

#include <memory>

#include "lib/planning/plan/run_solver.h"

namespace ckplan {

// kUnsupported: the graph is too large, or has no backward pass.
Result<std::unique_ptr<PreparedRunSolver>> PrepareTorchBudgetRuns(const JointGraph& graph,
                                                                  const SolveLimits& limits);

}  // namespace ckplan
