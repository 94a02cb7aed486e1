// Plans by the algorithm `best`. A forward graph is expanded into a joint graph, which
// lib/planning/algorithms/best solves like any other joint graph.
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

  // Returns the first plan of SolveByBest that fits the budget, which must be given, and adds no
  // more than `enough`. If there is none, returns the best plan that it finds, or nothing if none
  // fits. All problems must be the same but for their budgets. For a forward graph without
  // constraints, a search begins with what those before have found.
  Result<std::optional<Answer>> Solve(const PlanProblem& problem, SearchDepth depth);

  // Returns the peak of a plan that the searches have found, or would with this peak as the budget,
  // and that `fits` accepts.
  std::optional<Bytes> PeakThatFits(
      const std::function<bool(const Schedule& schedule, Bytes peak)>& fits) {
    return search_ && !HasConstraints(request_) ? search_->PeakThatFits(fits) : std::nullopt;
  }

 private:
  const PlanRequest& request_;
  const Cost enough_;
  const SolveLimits& limits_;
  std::optional<BestSearch> search_;
};

// Returns the curve from which the plan without a budget is chosen, with more points. There is a
// plan for each point, and points with more memory cost less time.
Result<std::vector<CurvePoint>> TraceCurveByBest(const PlanProblem& problem,
                                                 const SolveLimits& limits);

// Returns a lower bound on the added time of all plans in the graph's own order that fit the
// budget. It is found by a few cuts, which take milliseconds. Returns nothing if it is proven that
// no such plan fits.
std::optional<Cost> OwnOrderBound(const TrainingStep& step, Bytes budget);

}  // namespace ckplan
