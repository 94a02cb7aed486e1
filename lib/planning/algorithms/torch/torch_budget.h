// Plans like torch.compile with activation_memory_budget, as far as its algorithm is public: a
// minimum cut, and a knapsack over the operations that the cut may not recompute.
//
//   No paper. PyTorch's pull requests 126320 (the setting, the knapsack) and 177756 (the measures
//   of memory), and He, Yu, "Transcending Runtime-Memory Tradeoffs in Checkpointing by being
//   Fusion Aware", MLSys 2023 (the minimum cut).
//
// Idea. The setting is a share of the bytes that backward reads from the forward pass; at 100 %,
// all of them are saved. Below that:
//   1. A minimum cut, by bytes, between the inputs of the step and its backward pass chooses the
//      values to save, such that no compute-intensive operation (convolution, matrix product,
//      attention) is recomputed. Elementwise operations and normalisations may be.
//   2. If that exceeds the share, a 0/1 knapsack chooses which results of compute-intensive
//      operations to save: their bytes must fit in the share, in units of 1/10,000 of the total,
//      and recomputing them would cost as much as possible. The others may then be recomputed, and
//      the cut is repeated.
// Backward runs in its own order; values that it reads but that were not saved are recomputed just
// before use.
//
// Guarantee  none: the setting limits saved bytes, not the peak. For a budget, all settings from 0
//            to 100 are tried, and the best plan whose simulated peak fits in the budget is taken.
// Knob       saved, the setting in percent: activation_memory_budget = 0.5 is saved=50. Without a
//            budget it is 100, as in PyTorch.
// Needs      operations marked as forward or backward, as in a joint graph; up to 50,000 of them.
// Cost       a minimum cut for each distinct solution of the knapsack. The knapsack takes 10,000
//            steps for each compute-intensive operation, once for all settings.
// Differs    - at 100 % nothing is recomputed. PyTorch may recompute elementwise operations, which
//              its compiler fuses; costs here do not model fusion.
//            - at other settings, PyTorch has an extra pass for a list of cheap operations, bans
//              recomputation by distance, and weights values by their distance from backward. None
//              of this is done here: among equal cuts, we take the one nearest to backward.
//            - costs are those of the graph; PyTorch counts floating-point operations by default.
//            - if no operation has a known compute-intensive type, operations that cost more than
//              the average count as compute-intensive.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/planning/plan/run_solver.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/max_flow.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Chooses the values to save between the forward and the backward pass: steps 1 and 2 above.

// Shares are measured in units of 1/10,000.
inline constexpr int64_t kWholeShare = 10'000;

class SavedValues {
 public:
  // The graph and the problem must outlive this object. Takes 10,000 steps per compute-intensive
  // operation.
  SavedValues(const JointGraph& graph, const RunProblem& problem);

  // Returns the first operation of the backward pass, or the number of operations if there is none.
  int32_t border() const { return border_; }
  // Returns, for each value, whether to save it within the share. May save values without memory.
  std::vector<bool> Within(int64_t share);

 private:
  struct Item {
    int32_t op;
    int64_t weight;  // In units of 1/10,000.
  };

  void FindNeeds();
  void FindIntensive(const JointGraph& graph);
  void BuildNetwork(const JointGraph& graph);
  void FillKnapsack();
  std::vector<bool> Cut(const std::vector<bool>& may_rerun);
  std::vector<bool> FindUnsaved(int64_t share) const;
  int64_t BytesOf(const std::vector<bool>& saved) const;
  int64_t CostToSave(int32_t value) const;
  // Tells whether the forward pass computes the value.
  bool IsForwardValue(int32_t value) const {
    const int32_t producer = problem_.producer[static_cast<size_t>(value)];
    return producer >= 0 && producer < border_;
  }
  // The two network nodes of a value.
  static int32_t Made(int32_t value) { return 2 * value; }
  static int32_t Kept(int32_t value) { return 2 * value + 1; }

  const RunProblem& problem_;
  int32_t border_ = 0;
  std::vector<bool> is_needed_;     // By value: computed in forward, read in backward.
  std::vector<bool> is_intensive_;  // Per operation.
  int64_t max_bytes_ = 0;           // The sum over all needed values.
  MaxFlow network_;
  std::vector<bool> by_cut_;  // The values saved by step 1.
  std::vector<Item> items_;
  std::vector<bool> is_taken_;        // [item * (kWholeShare + 1) + share]
  std::vector<bool> last_may_rerun_;  // The last cut of step 2: its argument and result.
  std::vector<bool> last_cut_;
};

// kUnsupported: the graph is too large, or has no backward pass.
Result<std::unique_ptr<PreparedRunSolver>> PrepareTorchBudgetRuns(const JointGraph& graph,
                                                                  const SolveLimits& limits);

}  // namespace ckplan
