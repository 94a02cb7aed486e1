// The budget of a request on the simulated peak, and the error if nothing fits it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the request's budget on the peak, which may cover more than the peak.
const Budget& PeakBudgetOf(const PlanRequest& request);
Budget& PeakBudgetIn(PlanRequest* request);
// Returns what that budget covers besides activations: nothing; all constants; or, if it is the
// device's memory, the constants and what is outside of tensors (lib/planning/plan/outside.h),
// without gradients that arrive (ArrivingGradients): how much of these is there at a peak depends
// on the plan.
Bytes CoveredByBudget(const TrainingStep& step, const PlanRequest& request);
// Returns that budget in bytes of activations. `baseline_peak` is the peak of keeping everything,
// and the budget covers `covered` besides the activations. Returns nothing if the request states no
// amount: it has no budget, or asks for the least peak or for a balance.
std::optional<Bytes> BudgetInBytes(const PlanRequest& request, Bytes baseline_peak, Bytes covered);
// Returns the budget of a request for this step, in bytes of activations.
std::optional<Bytes> BudgetInBytes(const TrainingStep& step, const PlanRequest& request);

// Returns what a plan may add to the step by the request; nothing if it does not limit that.
std::optional<Cost> MostAddedBy(const TrainingStep& step, const PlanRequest& request);
// Returns the balance that the request asks for; nothing if it asks for none.
std::optional<Balance> BalanceBy(const TrainingStep& step, const PlanRequest& request);

// A curve has points for this many budgets.
inline constexpr int64_t kCurveBudgets = 12;
// Returns budgets at equal distances up to the peak of keeping everything, above the least peak of
// a curve.
std::vector<Bytes> CurveBudgets(Bytes least, Bytes keep_all);

// Returns the error kInfeasible: the algorithm named by `subject` finds no plan that adds as little
// as the problem asks, and `least` is its plan of least added time.
Error AddedTimeError(const PlanProblem& problem, std::string_view subject, const Plan& least);
// Returns the error kInfeasible: the algorithm named by `subject`, the subject of the message,
// finds no plan within the problem's budget, and `least` is its plan of least peak. The message
// adds to both sizes what the request's budget covers besides activations; of a device's memory it
// names the least that holds that plan.
Error Infeasible(const PlanProblem& problem, std::string_view subject, const Plan& least);

// Returns whether an algorithm that finds its least peak by a solver has not proven it, so that a
// smaller budget than the one that a refusal names may have a plan. kMayReachLess is the note that
// says so.
bool MayReachLess(const SolverInfo& info, bool is_proven);
inline constexpr std::string_view kMayReachLess =
    "it is not proven that no smaller budget has a plan: the search for the least was cut short";

}  // namespace ckplan
