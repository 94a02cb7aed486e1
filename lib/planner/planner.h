// From a request to a whole, checked plan: finds the algorithm, turns its knob until the simulated
// peak fits the budget, and lowers, simulates, places and checks the best plan found.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/registry.h"
#include "lib/planner/source.h"

namespace ckplan {

// The algorithms that kAutoAlgorithm has left out since they had too little.
struct Shortage {
  std::vector<std::string> of_time;
  std::vector<std::string> of_memory;
};

// Whether the algorithm plans what the source has: on a joint graph of its own, only algorithms do
// that decide on runs (registry.h).
bool CanPlan(const SolverInfo& info, const Source& source);

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

// Makes a plan for a graph that was not read from a file. The plan names no model, and keeps the
// request's settings for reading unchanged.
Result<Plan> MakePlan(const TensorGraph& graph, const PlanRequest& request,
                      const SolveLimits& limits, Shortage* shortage = nullptr);

}  // namespace ckplan
