// Solves the program over moments in any order in a loop: this gives a bound for plans in any
// order, and plans in the orders that the solutions choose.
//
// A solution is expanded into runs. If they fit the budget, they are optimal. If not, moments of
// the chosen order may be found that lead to a plan in it (moment_loop.h), and a moment where the
// expansion exceeds the budget joins the chain, if it is comparable with all of the chain.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/moment_loop.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// `order` is as in SolveMomentsInAnyOrder. `moments` are operations whose first runs should be
// moments; those on their longest chain are used. The bound and the proof of infeasibility hold for
// all plans. kUnsupported: built without a MIP solver.
Result<LoopOutcome> SolveAnyOrderLoop(const JointGraph& graph, const RunProblem& problem,
                                      std::span<const OpId> order, std::span<const OpId> moments,
                                      int64_t budget, const LoopLimits& limits);

}  // namespace ckplan
