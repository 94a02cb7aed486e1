// Whether an algorithm takes what a request asks of it, on whatever graph. Errors are kUsage.
#pragma once

#include "lib/base/result.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"

namespace ckplan {

// The objective "memory" is one that the algorithm has.
Result<Done> CheckObjective(const SolverInfo& info, const PlanRequest& request);
// The knob that is to be set is the algorithm's, and nothing else sets it.
Result<Done> CheckSetting(const SolverInfo& info, const PlanRequest& request);
// Decisions come with the algorithm `given` alone.
Result<Done> CheckDecider(const SolverInfo& info, const PlanRequest& request);
// Steps in any order are asked of algorithms that plan them.
Result<Done> CheckTakesOrder(const SolverInfo& info, const PlanRequest& request);
// The request has one budget at most.
Result<Done> CheckOneBudget(const PlanRequest& request);

}  // namespace ckplan
