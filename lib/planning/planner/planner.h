// Turns a request into a checked plan: finds the algorithm, sets its knob so that the simulated
// peak fits the budget, then lowers, simulates, places and checks the best plan found.
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

// The algorithms that kAutoAlgorithm skipped because they ran out of time or memory.
struct Shortage {
  std::vector<std::string> of_time;
  std::vector<std::string> of_memory;
};

// The plan stores the settled request; see PlanRequest. The request's settings for reading a model
// are ignored, because the source has already been read; the plan stores those of the source.
// kInfeasible: the remedy is the smallest feasible budget; the message names the action that needs
// it. kUsage: unknown algorithm, an objective or paper budget that the algorithm doesn't support,
// or several budgets.
//
// kAutoAlgorithm tries all algorithms. It picks the plan with the least overhead within the budget,
// then the lowest peak, then the first name in alphabetical order; for the smallest budget, peak
// comes before overhead. The plan is exactly that of its algorithm, and carries that algorithm's
// name. Algorithms that find the graph too large are skipped. They measure this in search steps, so
// the same request gives the same plan everywhere. Algorithms that `limits` stops are skipped as
// well, and listed in `shortage`. kUsage: the request has no budget on the peak. Without one, each
// algorithm follows its paper's own goal, and their plans can't be compared.
//
// kTimeout: a stop came before the first plan. After a later stop, the search returns its best plan
// so far, with a guarantee that begins with kStoppedEarly. kUnsupported: out of memory.
Result<Plan> MakePlan(const Source& source, const PlanRequest& request, const SolveLimits& limits,
                      Shortage* shortage = nullptr);

// Makes a plan for a step that wasn't read from a file. The plan names no model, and stores the
// request's settings for reading unchanged.
Result<Plan> MakePlan(const TrainingStep& step, const PlanRequest& request,
                      const SolveLimits& limits, Shortage* shortage = nullptr);

}  // namespace ckplan
