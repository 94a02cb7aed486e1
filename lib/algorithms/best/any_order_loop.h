// The program over moments in any order, solved in a loop: a bound for plans in any order, and
// plans in the orders that its solutions choose.
//
// A solution is expanded into runs. If they fit the budget they are optimal; if not, moments of the
// order that was chosen may be found that lead to a plan of it (moment_loop.h), and a moment where
// the expansion exceeds the budget joins the chain, if it is comparable with all of it.
#pragma once

#include <cstdint>
#include <span>

#include "lib/algorithms/best/moment_loop.h"
#include "lib/base/result.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

// `order` as in SolveMomentsInAnyOrder. `moments`: operations whose first runs are to be moments;
// those of their longest chain are. The bound, and what is proven infeasible, are of all plans.
// kUnsupported: built without a MIP solver.
Result<LoopOutcome> SolveAnyOrderLoop(const JointGraph& graph, const RunProblem& problem,
                                      std::span<const OpId> order, std::span<const OpId> moments,
                                      int64_t budget, const LoopLimits& limits);

}  // namespace ckplan
