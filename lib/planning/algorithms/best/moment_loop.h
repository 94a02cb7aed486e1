// Solves the program over moments in a loop until its plan fits. The first moment is where the
// order itself needs the most memory. If the plan exceeds the budget elsewhere, the operation that
// runs there becomes a moment, too, or, between two moments, the memory of its rerun is charged.
// Only one of these is added at a time: a program with one moment less is solved much faster, and
// its bound is mostly as good. If a plan fits and costs what the program says, it is optimal for
// the order.
//
// One to three moments usually suffice. If the work runs out first, there are other plans: each
// better solution found on the way is a plan if it fits, and a program whose plan slightly exceeds
// the budget is solved again with that much less memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// The memory at each step of some runs, and the position of each step in an order of first runs.
// This shows where a program over moments needs further moments.
struct StepView {
  std::vector<int64_t> bytes;
  // The position in the order of the first run at or after the step; after the last first run, the
  // order's size.
  std::vector<int32_t> position;

  int64_t Peak() const;
};

// `order` lists operations in the order of their first runs in `runs`.
StepView ViewSteps(const JointGraph& graph, std::span<const OpId> order, const Runs& runs);

// Consecutive steps above the budget form stretches. Among stretches with a step that `may_take`
// accepts, picks the one with the highest peak, and returns its accepted step with the most memory.
std::optional<size_t> TopAbove(const StepView& view, int64_t budget,
                               const std::function<bool(size_t)>& may_take);

struct LoopLimits {
  int64_t work = 0;  // For all solves, as MipLimits counts it.
  int64_t rounds = 0;
  // If set, the loop also ends with a plan with at most this overhead, or once it proves that none
  // exists.
  std::optional<int64_t> enough = std::nullopt;
};

struct LoopOutcome {
  std::optional<Runs> runs;    // The best plan found that fits the budget.
  int64_t cost = 0;            // The total cost of `runs`.
  int64_t lower_bound = 0;     // A lower bound on the overhead of every plan that keeps the order
                               // and the budget.
  bool is_infeasible = false;  // Proven: no plan that keeps the order fits.
  std::vector<OpId> moments;   // The operations, in the order, whose first runs were the moments of
                               // the last program.
  // The plan of the last program solved, or else of the last program, if it exceeds the budget.
  std::optional<Runs> exceeding;
  int64_t work = 0;  // The work done, as MipLimits counts it.
};

// `order` is as in SolveMoments. kUnsupported: built without a MIP solver.
Result<LoopOutcome> SolveMomentLoop(const JointGraph& graph, const RunProblem& problem,
                                    std::span<const OpId> order, int64_t budget,
                                    const LoopLimits& limits);

}  // namespace ckplan
