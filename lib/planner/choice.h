// Which plan of an algorithm answers a request: that of the setting, or of the paper's budget, that
// is asked for; the best within a budget on the simulated peak; or the paper's own choice.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/knob_search.h"
#include "lib/planner/plan_problem.h"

namespace ckplan {

struct ChosenPlan {
  Candidate candidate;
  bool fits = true;          // Within the budget; otherwise it is the plan of least peak.
  bool was_stopped = false;  // It is the best that was found until then.
};

// Errors are those of MakePlan (planner.h).
Result<ChosenPlan> ChoosePlan(const SolverInfo& info, const View& view, const PlanProblem& problem,
                              const SolveLimits& limits);

// The setting of the algorithm's knob at which the candidate was found; nothing if it belongs to
// none.
std::optional<KnobSetting> SettingOf(const SolverInfo& info, const Candidate& chosen);

}  // namespace ckplan
