// Makes plans by one algorithm, for the budgets of a request: solves, lowers, simulates, places and
// checks. What needs several plans, as a memory or kAutoAlgorithm do, is above
// (lib/planning/planner/planner.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Turns the request into a problem for the step, without constraints.
PlanProblem ProblemOf(const TrainingStep& step, const PlanRequest& request);

// Returns the algorithm's plan. The request must have no memory. The errors are MakePlan's.
Result<Plan> MakePlanBy(const SolverInfo& info, const TrainingStep& step,
                        const PlanRequest& request, const SolveLimits& limits);

class BestUntil;
enum class SearchDepth : uint8_t;

// kFigures: steps and figures only. Buffers have no offsets, so the plan hasn't passed the checker
// and must not be written or returned to users.
enum class PlanDetail : uint8_t { kFigures, kWhole };

struct PlanWithin {
  std::optional<Plan> plan;         // A plan that adds no more time than `enough`.
  std::optional<Cost> least_found;  // The added time of the best plan found, even if too long.
};

// Searches with `best` for a plan that fits the request's budget on the peak and adds at most
// as much time as `search` allows. The search is MakePlan's, but it ends at the first such plan or
// once it proves that none exists, so it is faster. MakePlan adds at most as much time as `plan`;
// if there is no `plan`, MakePlan finds none either. Other algorithms' plans in other orders can
// cause exceptions, because the search for them depends on the results so far.
Result<PlanWithin> FindBestPlanWithin(const TrainingStep& step, const PlanRequest& request,
                                      BestUntil* search, SearchDepth depth, PlanDetail detail);

// Returns peak and overhead of the algorithm's plans for the lowest peak and the budgets of a curve
// (CurveBudgets in peak_budget.h). For `best`, returns the points of its search without a budget,
// and more. The request must have no budget, and must name an algorithm for which CanPlan
// (registry.h) holds, not kAutoAlgorithm. Returns the errors of MakePlan.
Result<std::vector<CurvePoint>> PointsByBudgets(const TrainingStep& step,
                                                const PlanRequest& request,
                                                const SolveLimits& limits);

}  // namespace ckplan
