// From a request to a whole, checked plan: finds the algorithm, turns its knob until the simulated
// peak fits the budget, and lowers, simulates, places and checks the best plan found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// The algorithms that kAutoAlgorithm has left out because they had too little time or memory.
struct Shortage {
  std::vector<std::string> of_time;
  std::vector<std::string> of_memory;
};

// The plan holds the request as it is settled: see PlanRequest. The request's settings for reading
// a model are ignored, since the source has already been read: the plan takes them from the source.
// kInfeasible: the remedy is the least feasible budget; the message says which step needs it.
// kUsage: unknown algorithm, an objective or paper budget that the algorithm does not have, or more
// than one budget.
//
// The algorithm kAutoAlgorithm tries all others. Its plan is the one of least overhead within the
// budget, then of least peak, then of the first name in alphabetical order; for the least budget,
// it is the one of least peak, then of least overhead. The plan is exactly that of its algorithm,
// and has that algorithm's name. Algorithms that refuse the graph as too large are left out. They
// measure this in steps of their search, so that the same request gives the same plan everywhere.
// Algorithms that `limits` stops are left out as well, and named in `shortage`. kUsage: there is no
// budget on the peak. By their papers' own choices, algorithms pursue different goals and cannot be
// compared.
//
// kTimeout: stopped before there was a plan. A search that is stopped later returns its best plan
// so far, whose guarantee begins with kStoppedEarly. kUnsupported: memory ran out.
Result<Plan> MakePlan(const Source& source, const PlanRequest& request, const SolveLimits& limits,
                      Shortage* shortage = nullptr);

// Makes a plan for a step that was not read from a file. The plan names no model, and keeps the
// request's settings for reading unchanged.
Result<Plan> MakePlan(const TrainingStep& step, const PlanRequest& request,
                      const SolveLimits& limits, Shortage* shortage = nullptr);

class BestUntil;
enum class SearchDepth : uint8_t;

// What a plan has. kFigures: its steps and figures only; its buffers have no places, so it has not
// passed the checker, and is not to be given to anyone.
enum class PlanDetail : uint8_t { kFigures, kWhole };

struct PlanWithin {
  std::optional<Plan> plan;         // A plan that adds no more time than `enough`.
  std::optional<Cost> least_found;  // What the best plan found adds, even if it is too much.
};

// Looks for a plan by `best` within the request's budget on the peak that adds no more time than
// `search` allows. It is that of MakePlan, but it ends at the first such plan, or once it is
// proven that there is none, and so takes less time. MakePlan adds no more time than `plan`, and if
// there is no such plan, MakePlan finds none either. Exceptions are possible with other algorithms'
// plans in other orders, because the search looks for them from what it has found so far.
Result<PlanWithin> FindBestPlanWithin(const TrainingStep& step, const PlanRequest& request,
                                      BestUntil* search, SearchDepth depth, PlanDetail detail);

// Returns peak and overhead of the algorithm's plans for its least peak and the budgets of a curve
// (CurveBudgets in peak_budget.h). For `best`, returns what it finds in its
// search without a budget, and more points. The request must have no budget and must name an
// algorithm for which CanPlan (registry.h) holds; kAutoAlgorithm is not allowed. Errors are those
// of MakePlan.
Result<std::vector<CurvePoint>> PointsByBudgets(const TrainingStep& step,
                                                const PlanRequest& request,
                                                const SolveLimits& limits);

}  // namespace ckplan
