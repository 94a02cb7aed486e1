// The budget of a request on the simulated peak, and the error for what does not fit it.
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/plan_problem.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// The budget on the peak, with constants or without.
const Budget& PeakBudgetOf(const PlanRequest& request);
// What that budget covers beside activations: nothing, or all that no plan changes.
Bytes ConstantsInBudget(const TrainingStep& step, const PlanRequest& request);
// That budget as bytes of activations alone, for a graph with that peak of keeping everything,
// where the budget covers so much beside it. Nothing if the request states no amount: it has none,
// or asks for the least.
std::optional<Bytes> BudgetInBytes(const PlanRequest& request, Bytes baseline_peak, Bytes covered);
// The same of a step.
std::optional<Bytes> BudgetInBytes(const TrainingStep& step, const PlanRequest& request);

// kInfeasible: `who` finds no plan within the problem's budget; `least` is the plan of least peak
// that it has. The message adds to both what the request's budget covers beside the peak.
Error Infeasible(const PlanProblem& problem, std::string_view who, const Plan& least);

// Whether an algorithm that finds its least peak by a solver has not proven it, so that a smaller
// budget than the one that a refusal names may have a plan; and the note that says so.
bool MayReachLess(const SolverInfo& info, bool is_proven);
inline constexpr std::string_view kMayReachLess =
    "it is not proven that no smaller budget has a plan: the search for the least was cut short";

}  // namespace ckplan
