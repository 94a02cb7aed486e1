// The program over moments, solved in a loop until its plan fits: the first moment is where the
// order itself needs the most memory; whenever the plan exceeds the budget elsewhere, the operation
// that runs there becomes a moment too, or, between two moments, what runs again there is charged
// with memory: one at a time, for a program of one moment less is solved much sooner, and its bound
// is mostly as good. A plan that fits and costs what the program says is optimal for the order.
// Mostly one to three moments suffice. Where the work does not, there are plans of the programs so
// far: each better solution that is found on the way is one if it fits, and a program whose plan
// exceeds the budget by a little is also solved with as much less room.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

struct LoopLimits {
  int64_t work = 0;  // Of all solves together, as MipLimits counts it.
  int64_t rounds = 0;
  // If set, the loop also ends with a plan whose overhead is no higher, or with the proof that
  // there is none.
  std::optional<int64_t> enough = std::nullopt;
};

struct LoopOutcome {
  std::optional<Runs> runs;    // The best plan found that fits the budget.
  int64_t cost = 0;            // Of `runs`, all runs together.
  int64_t lower_bound = 0;     // On the overhead of every plan that keeps the order and the budget.
  bool is_infeasible = false;  // Proven: no plan that keeps the order fits.
  std::vector<OpId> moments;  // Operations, in the order, whose first runs were the last program's.
  // The plan of the last program that was solved, or of the last, if it exceeds the budget.
  std::optional<Runs> exceeding;
  int64_t work = 0;  // Done, as MipLimits counts it.
};

// `order` as in SolveMoments. kUnsupported: built without a MIP solver.
Result<LoopOutcome> SolveMomentLoop(const JointGraph& graph, const RunProblem& problem,
                                    std::span<const OpId> order, int64_t budget,
                                    const LoopLimits& limits);

}  // namespace ckplan
