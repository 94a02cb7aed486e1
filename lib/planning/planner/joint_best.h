// Plans joint graphs with `best` (lib/planning/algorithms/best), with and without offloading. The
// plans are at least as good as those of the other algorithms for joint graphs, and plans with
// offloading at least as good as those without a link.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/best/best.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/planning/planner/warm_starts.h"

namespace ckplan {

// Returns the fastest plan found within the budget, if any. A problem without a budget gets the
// plan with the lowest peak that adds at most kAddedPercentWithoutBudget
// (lib/planning/plan/added_time.h). For a balance, returns the plan with the lowest product of peak
// and time found.
Result<WithinBudget> SolveJointByBest(const PlanProblem& problem, const SolveLimits& limits);

// Returns the curve of memory against time for a problem without a budget. Each point is a plan;
// more memory costs less time.
Result<std::vector<CurvePoint>> TraceJointCurveByBest(const PlanProblem& problem,
                                                      const SolveLimits& limits);

// Requires a budget. Returns the first plan of this search that fits it and adds at most `enough`.
// If the search finds none, returns its best plan that fits, if any.
Result<std::optional<Answer>> SolveJointByBestUntil(const PlanProblem& problem, Cost enough,
                                                    const SolveLimits& limits);

// ---- With offloading ----

// Requires a budget. Returns the best plan within it, if one is found.
Result<WithinBudget> SolveOffloadWithin(const PlanProblem& problem, const SolveLimits& limits);

// Solves a problem without a budget. `without` is the plan for the same problem without a link.
Result<Answer> SolveOffloadWithoutBudget(const Schedule& without, const PlanProblem& problem,
                                         const SolveLimits& limits);
// Returns the curve of memory against time; see TraceJointCurveByBest.
Result<std::vector<CurvePoint>> TraceOffloadCurve(const Schedule& without,
                                                  const PlanProblem& problem);

// See SolveJointByBestUntil.
Result<std::optional<Answer>> SolveOffloadUntil(const PlanProblem& problem, Cost enough,
                                                const SolveLimits& limits);

// ---- Shared by both searches ----

WarmStartLimits WarmStartLimitsFor(SearchEffort effort);

// Returns the best plan within the budget, at least as good as those of the other algorithms.
Result<BestOutcome> SolveBestAt(SearchEffort effort, const PlanProblem& problem,
                                BestProblem* shared, const BestOptions& options,
                                const SolveLimits& limits);

// Tells whether more effort can't improve the result.
bool IsFinal(const BestOptions& options, const BestOutcome& best, const SolveLimits& limits);

// Searches with low effort first, so that more effort never makes a plan worse. If `options.before`
// is set, it is the outcome of the first `done` efforts, and the search continues from there.
Result<BestOutcome> SolveBestWithin(const PlanProblem& problem, BestProblem* shared,
                                    BestOptions options, const SolveLimits& limits,
                                    size_t done = 0);

}  // namespace ckplan
