// Solves the program over moments in a loop until its plan fits. The first moment is where the
// order itself needs the most memory. If the plan exceeds the budget elsewhere, the operation that
// runs there becomes a moment, too, or, between two moments, the memory of its rerun is charged.
// Only one of these is added at a time: a program with one moment less is solved much sooner, and
// its bound is mostly as good. A plan that fits and costs what the program says is optimal for the
// order.
//
// Mostly one to three moments suffice. If the work runs out first, there are other plans: each
// better solution found on the way is a plan if it fits, and a program whose plan exceeds the
// budget by a little is solved again with that much less memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

struct LoopLimits {
  int64_t work = 0;  // For all solves together, as MipLimits counts it.
  int64_t rounds = 0;
  // If set, the loop also ends with a plan whose overhead is no higher, or with the proof that
  // there is none.
  std::optional<int64_t> enough = std::nullopt;
};

struct LoopOutcome {
  std::optional<Runs> runs;    // The best plan found that fits the budget.
  int64_t cost = 0;            // The cost of all runs in `runs`.
  int64_t lower_bound = 0;     // A lower bound of the overhead of every plan that keeps the order
                               // and the budget.
  bool is_infeasible = false;  // Proven: no plan that keeps the order fits.
  std::vector<OpId> moments;   // The operations, in the order, whose first runs were the moments of
                               // the last program.
  // The plan of the last program that was solved, or else of the last program, if it exceeds the
  // budget.
  std::optional<Runs> exceeding;
  int64_t work = 0;  // The work done, as MipLimits counts it.
};

// `order` is as in SolveMoments. kUnsupported: built without a MIP solver.
Result<LoopOutcome> SolveMomentLoop(const JointGraph& graph, const RunProblem& problem,
                                    std::span<const OpId> order, int64_t budget,
                                    const LoopLimits& limits);

}  // namespace ckplan
