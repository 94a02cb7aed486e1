// Which plan of an algorithm answers a request: that of the setting, or of the paper's budget, that
// is asked for; the best within a budget on the simulated peak; or the paper's own choice.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/knob_search.h"

namespace ckplan {

struct ChosenPlan {
  Candidate candidate;
  bool was_stopped = false;  // It is the best that was found until then.
};

// `least` becomes the least peak of which a refusal for want of budget speaks. Errors are those of
// MakePlan (planner.h).
Result<ChosenPlan> ChoosePlan(const SolverInfo& info, const View& view, const PlanRequest& request,
                              const SolveLimits& limits, std::optional<Bytes>* least);

// The setting of the algorithm's knob at which the candidate was found; nothing if it belongs to
// none.
std::optional<KnobSetting> SettingOf(const SolverInfo& info, const Candidate& chosen);

}  // namespace ckplan
