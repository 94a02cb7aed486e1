// Plans of a model's step by the algorithms that decide on the nodes of its forward graph: what
// they decide is lowered to a schedule, and the schedule is taken as runs of the step and measured
// there.
#pragma once

#include "lib/base/result.h"
#include "lib/plan/solver.h"
#include "lib/planner/joint_problem.h"

namespace ckplan {

// The best plan for either objective that the request allows, by the algorithm or one that it
// contains (containment.h); where nothing fits the budget, the plan of least peak. The problem has
// a forward view. Errors are those of MakePlan (planner.h) on a forward graph.
Result<JointOutcome> SolveByStrategies(const SolverInfo& info, const JointProblem& problem,
                                       const SolveLimits& limits);

}  // namespace ckplan
