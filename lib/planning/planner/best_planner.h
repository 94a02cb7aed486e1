// Plans with the algorithm `best`. It expands a forward graph into a joint graph, and
// lib/planning/algorithms/best solves that like any other joint graph.
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

// Returns the fastest plan within the budget or, if none fits, the plan with the lowest peak. A
// problem without a budget gets the plan with the lowest peak that adds at most AllowedAddedTime.
// If the problem limits the added time, further searches try to prove that this peak is minimal.
// For a balance, returns the plan with the lowest product of peak and time on the curve.
//
// The plan is at least as good as that of every registered algorithm for the same request: the
// search starts from their plans unless it has proven that none is better. Quick effort skips the
// dynamic programs. Allowing any order of steps never makes a plan worse.
Result<Answer> SolveByBest(const PlanProblem& problem, const SolveLimits& limits);

// Requires a budget. Returns the first plan of this search that fits it and adds at most `enough`.
// If the search finds none, returns its best plan that fits, if any.
Result<std::optional<Answer>> SolveByBestUntil(const PlanProblem& problem, Cost enough,
                                               const SolveLimits& limits);

// Returns the curve from which a plan without a budget is chosen, with extra points. Each point is
// a plan; more memory costs less time.
Result<std::vector<CurvePoint>> TraceCurveByBest(const PlanProblem& problem,
                                                 const SolveLimits& limits);

// Returns a lower bound on the added time of all plans in the graph's own order that fit the
// budget, or nothing if provably none fits. Takes milliseconds: a few cuts suffice.
std::optional<Cost> OwnOrderBound(const TrainingStep& step, Bytes budget);

}  // namespace ckplan
