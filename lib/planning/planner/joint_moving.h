// Plans of a joint graph by `best` that may move values to the host (lib/planning/algorithms/best/
// offload_best.h), no worse than those of the same request without a link.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// As SolveJointByBest, for a problem with `offload`.
Result<Answer> SolveMovingByBest(const PlanProblem& problem, const SolveLimits& limits);
// As SolveJointByBestUntil and TraceJointCurveByBest.
Result<std::optional<Answer>> SolveMovingUntil(const PlanProblem& problem, Cost enough,
                                               const SolveLimits& limits);
Result<std::vector<CurvePoint>> TraceMovingCurve(const PlanProblem& problem,
                                                 const SolveLimits& limits);

}  // namespace ckplan
