// Chooses an algorithm's plan for a request: the plan of the request's setting or paper budget, the
// best plan within a budget on the simulated peak or, without any of these, the paper's own choice.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/knob_search.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

struct ChosenPlan {
  Candidate candidate;
  // Whether the plan is within the budget or the added time. If not, it is the plan with the lowest
  // peak or the least added time.
  bool fits = true;
  bool was_stopped = false;  // A stop ended the search: this is the best plan so far.
};

// If no plan fits a budget on the simulated peak, returns the plan with the lowest peak. Returns
// the errors of MakePlan (planner.h).
Result<ChosenPlan> ChoosePlan(const SolverInfo& info, const View& view, const PlanProblem& problem,
                              const SolveLimits& limits);

// Returns the knob setting at which the candidate was found, if any.
std::optional<KnobSetting> SettingOf(const SolverInfo& info, const Candidate& chosen);

}  // namespace ckplan
