// Runs a paper's algorithm, or `given`. `best` starts from these plans (best_planner.h).
#pragma once

#include <new>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Returns the best plan within the problem's budget or, if none fits, the one with the lowest peak.
// The request must have passed CheckRequest (check_request.h). Returns the errors of MakePlan
// (planner.h).
Result<Answer> SolveWith(const SolverInfo& info, const PlanProblem& problem,
                         const SolveLimits& limits);

// Plans with an algorithm that plans the nodes of a forward graph. Lowers its decisions to a
// schedule, and measures that on the step. For a joint graph expanded from a forward graph, turns
// the schedule into runs of the joint graph.
//
// Returns the best plan, over all objectives that the request allows, of the algorithm or one that
// it contains (registry.h). If none fits the budget, returns the plan with the lowest peak.
//
// For the objective kAuto, returns the time-centric plan or, if it exceeds the budget, the
// memory-centric one (Kusumoto et al. 2019, section 4.4). When minimizing the peak, returns the one
// with the lower peak.
Result<Answer> SolveStrategies(const SolverInfo& info, const PlanProblem& problem,
                               const SolveLimits& limits);

// Returns the algorithm's plans for the lowest peak and the budgets of its curve (CurveBudgets in
// peak_budget.h), after preparing once. The objective kAuto includes the plans of both objectives.
Result<std::vector<Answer>> SolveForBudgets(const SolverInfo& info, const PlanProblem& problem,
                                            const SolveLimits& limits);

// kUnsupported: the algorithm needs more memory than the limit or than is available.
Error OutOfMemoryError(const SolverInfo& info, const SolveLimits& limits);
bool IsOutOfMemory(const Error& error);

// Returns the result of `solve`, or OutOfMemoryError if it runs out of memory. Its memory is freed
// before that.
template <typename Solve>
auto CatchOutOfMemory(const SolverInfo& info, const SolveLimits& limits, Solve solve)
    -> decltype(solve()) {
  try {
    return solve();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError(info, limits);
  }
}

}  // namespace ckplan
