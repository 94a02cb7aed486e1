// Plans by the algorithm `best`. A forward graph is expanded into a joint graph, which
// lib/planning/algorithms/best solves like any other joint graph.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the best plan within the budget or, if nothing fits it, the plan of least peak. If the
// problem asks for the least peak, returns the plan of least peak. Without a budget, returns the
// plan of the least peak that adds at most AllowedAddition. If the problem limits the added time,
// more searches try to prove that no plan within it has a lower peak. If the problem asks for a
// balance, returns the plan of the least product that is found on the curve.
//
// The plan is no worse than that of any algorithm of the registry for the same request: the search
// starts from their plans unless it is proven that none of them is better. With quick effort, the
// dynamic programs are left out. A request that allows any order of steps never gets a worse plan
// than one that does not.
Result<Answer> SolveByBest(const PlanProblem& problem, const SolveLimits& limits);

// Returns the first plan of this search that fits the budget, which must be given, and adds no more
// than `enough`. If there is none, returns the best plan that it finds, or nothing if none fits.
Result<std::optional<Answer>> SolveByBestUntil(const PlanProblem& problem, Cost enough,
                                               const SolveLimits& limits);

// Returns the curve from which the plan without a budget is chosen, with more points. There is a
// plan for each point, and points with more memory cost less time.
Result<std::vector<CurvePoint>> TraceCurveByBest(const PlanProblem& problem,
                                                 const SolveLimits& limits);

// Returns a lower bound on the added time of all plans in the graph's own order that fit the
// budget. It is found by a few cuts, which take milliseconds. Returns nothing if it is proven that
// no such plan fits.
std::optional<Cost> OwnOrderBound(const TrainingStep& step, Bytes budget);

}  // namespace ckplan
