// Plans with the algorithm `best`. It expands a forward graph into a joint graph, and
// lib/planning/algorithms/best solves that like any other joint graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/best_search.h"
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

// Tells whether the curve of the graph's own order serves the request: a forward graph, one
// micro-batch in flight, and no constraints.
bool HasOneCurve(const TrainingStep& step, const PlanRequest& request);

// How far a search goes. kCurve: only the curve of the graph's own order is read.
enum class SearchDepth : uint8_t { kCurve, kWhole };

// Searches for plans of one step that fit a budget and add no more than `enough`.
class BestUntil {
 public:
  // The request may have any budget. Keeps references to it and to the limits.
  BestUntil(const PlanRequest& request, Cost enough, const SolveLimits& limits)
      : request_(request), enough_(enough), limits_(limits) {}

  Cost enough() const { return enough_; }
  const SolveLimits& limits() const { return limits_; }

  // Searches like SolveByBest, but stops at the first plan that fits the budget and adds at most
  // `enough`. If no plan adds that little, returns the fastest one found that fits, if any. The
  // problem must have a budget, and may differ from earlier ones only in that. With one curve, the
  // search continues from what earlier ones found.
  Result<std::optional<Answer>> Solve(const PlanProblem& problem, SearchDepth depth);

  // Returns the peak, at most `most`, of a plan that `fits` accepts. With that peak as the budget,
  // the next search finds this plan. Returns nothing if no plan is accepted, or if no search has
  // run yet. kTimeout: stopped.
  Result<std::optional<Bytes>> PeakThatFits(
      Bytes most, const std::function<bool(const Schedule& schedule, Bytes peak)>& fits);

 private:
  const PlanRequest& request_;
  const Cost enough_;
  const SolveLimits& limits_;
  std::optional<BestSearch> search_;
};

// Returns the curve from which a plan without a budget is chosen, with extra points. Each point is
// a plan; more memory costs less time.
Result<std::vector<CurvePoint>> TraceCurveByBest(const PlanProblem& problem,
                                                 const SolveLimits& limits);

// Returns a lower bound on the added time of all plans in the graph's own order that fit the
// budget, or nothing if provably none fits. Takes milliseconds: a few cuts suffice.
std::optional<Cost> OwnOrderBound(const TrainingStep& step, Bytes budget);

}  // namespace ckplan
