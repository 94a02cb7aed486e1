// A request's budget on the simulated peak, and the errors for an infeasible one.
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

// Returns the request's budget on the peak. It may include more than the peak; see CoveredByBudget.
const Budget& PeakBudgetOf(const PlanRequest& request);
Budget& PeakBudgetIn(PlanRequest* request);
// Returns what that budget covers on top of activations: nothing; all constants; or, for a memory
// limit, the constants and memory outside of tensors (lib/planning/plan/outside.h), but not
// arriving gradients (ArrivingGradients), because their size at the peak depends on the plan.
Bytes CoveredByBudget(const TrainingStep& step, const PlanRequest& request);
// Converts that budget to bytes of activations. `baseline_peak` is the keep-all peak, and `covered`
// is what the budget covers on top of activations. Returns nothing without a budget in bytes or
// percent: no budget, the lowest peak, or a balance.
std::optional<Bytes> BudgetInBytes(const PlanRequest& request, Bytes baseline_peak, Bytes covered);
// Returns a request's budget for this step in bytes of activations.
std::optional<Bytes> BudgetInBytes(const TrainingStep& step, const PlanRequest& request);

// Returns the most that a plan may add to the step, if the request limits that.
std::optional<Cost> MaxAddedTime(const TrainingStep& step, const PlanRequest& request);
// Returns the request's balance, if it has one.
std::optional<Balance> RequestedBalance(const TrainingStep& step, const PlanRequest& request);

// The number of budgets on a curve.
inline constexpr int64_t kCurveBudgets = 12;
// Returns evenly spaced budgets above a curve's lowest peak, up to the keep-all peak.
std::vector<Bytes> CurveBudgets(Bytes least, Bytes keep_all);

// The kInfeasible error for a limit on added time. `subject` names the algorithm, and `least` is
// its fastest plan.
Error AddedTimeError(const PlanProblem& problem, std::string_view subject, const Plan& least);
// The kInfeasible error for a budget. `subject` names the algorithm, and `least` is its plan with
// the lowest peak. Both sizes in the message include what the budget covers on top of activations;
// for a memory limit, the second is the smallest memory that holds the plan.
Error Infeasible(const PlanProblem& problem, std::string_view subject, const Plan& least);

// Tells whether a smaller budget than the one in an error may be feasible, because the algorithm's
// solver has not proven its lowest peak. Then the error gets the note kSmallerBudgetMayFit.
bool SmallerBudgetMayFit(const SolverInfo& info, bool is_proven);
inline constexpr std::string_view kSmallerBudgetMayFit =
    "a smaller budget may work: the search for the lowest peak was cut short";

}  // namespace ckplan
