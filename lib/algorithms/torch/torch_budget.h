// What torch.compile does for its setting activation_memory_budget, as far as it is described in
// public: a minimum cut, and a knapsack over what the cut may not cut.
//
//   No paper. PyTorch's pull requests 126320 (the setting, the knapsack) and 177756 (the measures
//   of memory), and He, Yu, "Transcending Runtime-Memory Tradeoffs in Checkpointing by being
//   Fusion Aware", MLSys 2023 (the minimum cut).
//
// Idea. The setting is a share of the bytes that backward reads of the forward pass, which are
// saved at 100 %. Below that
//   1. the values to save are a minimum cut, by bytes, between the inputs of the step and its
//      backward pass, such that nothing compute-intensive runs again: convolutions, matrix
//      products, attention. Elementwise operations and normalisations do.
//   2. If that is above the share, results of compute-intensive operations are chosen to be saved,
//      by a 0/1 knapsack: their bytes within the share, in units of 1/10,000 of all, the cost of
//      making them again as large as can be. The others may be made again, and the cut is taken
//      once more.
// Backward runs in its own order; what it reads and was not saved is made again just before.
//
// Guarantee  none: what is limited is what is saved and not the peak. So all settings from 0 to 100
//            are tried, and a budget gets the best of those whose simulated peak is within it.
// Knob       saved, the setting in per cent: activation_memory_budget = 0.5 is saved=50. 100
//            without a budget, as there.
// Needs      operations of both phases; a joint graph says which they are. Up to 50,000 of them.
// Cost       a minimum cut for each different answer of the knapsack; the knapsack takes 10,000
//            steps for each compute-intensive operation, once for all settings.
// Differs    - at 100 % nothing runs again. There, elementwise operations may, where a compiler
//              fuses them; costs here know nothing of that.
//            - at other settings it has a list of cheap operations, with a step of its own between,
//              bans by distance, and weights that grow with the distance from backward. None of it
//              here: of equal cuts the one next to backward is taken.
//            - costs are those of the graph, where it counts floating-point operations unless told
//              otherwise.
//            - where no operation has a type that is known as compute-intensive, those are so that
//              cost more than the average.
#pragma once

#include <memory>

#include "lib/plan/run_solver.h"

namespace ckplan {

// kUnsupported: too large a graph, or one without a backward pass.
Result<std::unique_ptr<PreparedRunSolver>> PrepareTorchBudgetRuns(const JointGraph& graph,
                                                                  const SolveLimits& limits);
Result<std::unique_ptr<PreparedSolver>> PrepareTorchBudget(const Problem& problem,
                                                           const SolveLimits& limits);

}  // namespace ckplan
