// Bounds and plans for any order of operations, by a program over moments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/moment_loop.h"
#include "lib/planning/algorithms/best/moment_program.h"
#include "lib/planning/algorithms/best/solve_program.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Return a flag per operation, unset for `op` itself. O(reads of all operations).
std::vector<bool> AncestorsOf(const RunProblem& problem, int32_t op);
std::vector<bool> DescendantsOf(const RunProblem& problem, int32_t op);

// Returns the longest chain of these operations in which each is an ancestor of the next. Ties go
// to the chain whose operations are listed first. O(reads of all operations) for each of `ops`.
std::vector<OpId> FindLongestChain(const RunProblem& problem, std::span<const OpId> ops);

// The program over moments for a free order. It chooses which values to keep, which operations to
// rerun, and between which moments operations run for the first time.
//
// The moments are the first runs of operations each of which needs the one before, so every plan
// has them in this order. The program is that of moment_program.h, except that it also chooses
//   x^j_o   o has run before moment j; after the last interval, x^(k+1)_o = 1,
//   f^j_o = x^(j+1)_o - x^j_o.
// It minimises the sum of cost_o r^j_o, where
//   (1) a^j_u + r^j_m(u) + f^j_m(u) >= f^j_o for each read u of o,
//   (2) r^j_o <= a^j_u + r^j_m(u) for each read u of o,
//   (3) a^(j+1)_u <= a^j_u + r^j_m(u) + f^j_m(u); for results also after the last interval,
//   (4) the values in memory at moment j leave room for its operation's writes and workspace,
//   (5) x^j_o <= x^j_m(u) for each read u of o; a^j_u <= x^j_m(u), r^j_o <= x^j_o <= x^(j+1)_o.
// The minimum cost is a lower bound on the overhead of every plan within the budget, in any order.
// docs/bounds.md has the proof.

// A solution: an order of first runs, and the values kept at its moments.
struct AnyOrderPlan {
  Runs order;
  std::vector<int32_t> moments;  // Positions in `order`.
  MomentPlan plan;
};

using AnyOrderOutcome = ProgramOutcome<AnyOrderPlan>;

// `order` has all required operations, each after the producers of its reads; the plan keeps this
// order between moments. `chain` is not empty, and each of its
// operations is an ancestor of the next. `max_work` limits the work. kUnsupported: built without a
// MIP solver, or too large for it.
Result<AnyOrderOutcome> SolveMomentsInAnyOrder(const RunProblem& problem,
                                               std::span<const OpId> order,
                                               std::span<const OpId> chain, int64_t budget,
                                               int64_t max_work);

// Solves the program over moments in any order in a loop. Finds a bound for plans in any order, and
// plans in the orders that the solutions choose.
//
// Each solution is expanded into runs. If they fit the budget, they are optimal. If not,
// moment_loop.h may find a plan in the chosen order, and a moment where the expansion exceeds the
// budget joins the chain if it is comparable with all of it.

// `order` is as in SolveMomentsInAnyOrder. `moments` are operations whose first runs should be
// moments; the longest chain of them is used. The bound and the proof of infeasibility hold for all
// plans. kUnsupported: built without a MIP solver.
Result<LoopOutcome> SolveAnyOrderLoop(const JointGraph& graph, const RunProblem& problem,
                                      std::span<const OpId> order, std::span<const OpId> moments,
                                      int64_t budget, const LoopLimits& limits);

}  // namespace ckplan
