// From a request to a whole, checked plan: finds the algorithm, turns its knob until the simulated
// peak fits the budget, and lowers, simulates, places and checks the best plan found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/registry.h"
#include "lib/planner/source.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// The algorithms that kAutoAlgorithm has left out since they had too little.
struct Shortage {
  std::vector<std::string> of_time;
  std::vector<std::string> of_memory;
};

// The plan holds the request as it is settled: see PlanRequest. What the request says about how a
// model is read does not count, since the source has been read: the plan takes it from there.
// kInfeasible: the remedy is the least feasible budget; the message tells which step needs it.
// kUsage: unknown algorithm, an objective or paper budget that the algorithm does not have, more
// than one budget.
//
// The algorithm kAutoAlgorithm stands for all of them: the plan is the one of least overhead within
// the budget, then of least peak, then of the first name; for the least budget, of least peak, then
// of least overhead. It is the very plan that its algorithm makes, under the algorithm's own name.
// Left out are algorithms that refuse the graph as too large for them, which they count in steps of
// their search, so that the same request gives the same plan everywhere. Those that `limits` stops
// are left out as well, and named in `shortage`. kUsage without a budget on the peak: algorithms by
// their papers' own choices are not after the same thing.
//
// kTimeout: stopped before there was a plan. A search that is stopped later gives its best plan so
// far, whose guarantee begins with kStoppedEarly. kUnsupported: memory ran out.
Result<Plan> MakePlan(const Source& source, const PlanRequest& request, const SolveLimits& limits,
                      Shortage* shortage = nullptr);

// Makes a plan for a step that was not read from a file. The plan names no model, and keeps the
// request's settings for reading unchanged.
Result<Plan> MakePlan(const TrainingStep& step, const PlanRequest& request,
                      const SolveLimits& limits, Shortage* shortage = nullptr);

struct PlanWithin {
  std::optional<Plan> plan;         // Adds no more time than is enough.
  std::optional<Cost> least_found;  // What the best plan adds that was found, enough or not.
};

// Whether there is a plan by `best` within the request's budget on the peak that adds no more time
// than `enough`: the first that the search of MakePlan comes to. The search ends there, or once it
// is proven that there is none, and so takes a part of the time. MakePlan adds no more time than
// `plan`, and where there is none, it finds none either; both but for other algorithms' plans in
// other orders, which are looked for where the search stands.
Result<PlanWithin> FindBestPlanWithin(const TrainingStep& step, const PlanRequest& request,
                                      Cost enough, const SolveLimits& limits);

// Peak and overhead of the algorithm's plans for so many budgets, at equal distances from its least
// peak to that of keeping everything; of `best` what it finds in its search without a budget, and
// more points. The request has no budget, and names an algorithm that CanPlan (registry.h) the
// step; kAutoAlgorithm is none of these. Errors are those of MakePlan.
Result<std::vector<CurvePoint>> PointsByBudgets(const TrainingStep& step,
                                                const PlanRequest& request, int64_t budget_count,
                                                const SolveLimits& limits);

}  // namespace ckplan
