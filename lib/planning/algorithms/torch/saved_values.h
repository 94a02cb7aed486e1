// Chooses the values to save between the forward and the backward pass: steps 1 and 2 of
// torch_budget.h.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/max_flow.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Shares are measured in units of 1/10,000.
inline constexpr int64_t kWholeShare = 10'000;

class SavedValues {
 public:
  // The graph and the problem must outlive this object. Takes O(10,000) steps for each
  // compute-intensive operation.
  SavedValues(const JointGraph& graph, const RunProblem& problem);

  // Returns the first operation of the backward pass; the number of operations if there is none.
  int32_t border() const { return border_; }
  // Returns for each value whether it is saved within the share. Values that occupy no memory may
  // be saved.
  std::vector<bool> Within(int64_t share);

 private:
  struct Item {
    int32_t op;
    int64_t weight;  // In units of the share.
  };

  void FindNeeds();
  void FindIntensive(const JointGraph& graph);
  void BuildNetwork(const JointGraph& graph);
  void FillKnapsack();
  std::vector<bool> Cut(const std::vector<bool>& may_rerun);
  std::vector<bool> LeftOut(int64_t share) const;
  int64_t BytesOf(const std::vector<bool>& saved) const;
  int64_t CostToSave(int32_t value) const;
  // Returns whether the forward pass makes the value.
  bool IsMade(int32_t value) const {
    const int32_t maker = problem_.maker[static_cast<size_t>(value)];
    return maker >= 0 && maker < border_;
  }
  // The two network nodes of a value.
  static int32_t Made(int32_t value) { return 2 * value; }
  static int32_t Kept(int32_t value) { return 2 * value + 1; }

  const RunProblem& problem_;
  int32_t border_ = 0;
  std::vector<bool> is_needed_;     // Per value: made in forward, read in backward.
  std::vector<bool> is_intensive_;  // Per operation.
  int64_t max_bytes_ = 0;           // The sum over all needed values.
  MaxFlow network_;
  std::vector<bool> by_cut_;  // The values saved by step 1.
  std::vector<Item> items_;
  std::vector<bool> is_taken_;        // [item * (kWholeShare + 1) + share]
  std::vector<bool> last_may_rerun_;  // The argument of the last cut in step 2, and its result.
  std::vector<bool> last_cut_;
};

}  // namespace ckplan
