// Chooses the plan of an algorithm that answers a request. If the request names a setting or a
// paper budget, that is the plan of the setting or the paper budget. If it has a budget on the
// simulated peak, it is the best plan within the budget; otherwise it is the paper's own choice.
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
  // Whether it is within the budget or the added time. Otherwise it is the plan of least peak, or
  // of least added time.
  bool fits = true;
  bool was_stopped = false;  // Whether a stop ended the search; it is then the best plan so far.
};

// If no plan fits a budget on the simulated peak, returns the plan of least peak. Errors are those
// of MakePlan (planner.h).
Result<ChosenPlan> ChoosePlan(const SolverInfo& info, const View& view, const PlanProblem& problem,
                              const SolveLimits& limits);

// Returns the setting of the algorithm's knob at which the candidate was found, or nothing if the
// candidate belongs to no setting.
std::optional<KnobSetting> SettingOf(const SolverInfo& info, const Candidate& chosen);

}  // namespace ckplan
