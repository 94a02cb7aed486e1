// Plans joint graphs with `best` and offloading (lib/planning/algorithms/best/offload_best.h). The
// plans are at least as good as those for the same request without a link.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// Requires a budget. Returns the best plan within it, if one is found.
Result<WithinBudget> SolveOffloadWithin(const PlanProblem& problem, const SolveLimits& limits);

// Solves a problem without a budget. `without` is the plan for the same problem without a link.
Result<Answer> SolveOffloadWithoutBudget(const Schedule& without, const PlanProblem& problem,
                                         const SolveLimits& limits);
// Returns the curve of memory against time; see TraceJointCurveByBest (joint_best.h).
Result<std::vector<CurvePoint>> TraceOffloadCurve(const Schedule& without,
                                                  const PlanProblem& problem);

// See SolveJointByBestUntil (joint_best.h).
Result<std::optional<Answer>> SolveOffloadUntil(const PlanProblem& problem, Cost enough,
                                                const SolveLimits& limits);

}  // namespace ckplan
