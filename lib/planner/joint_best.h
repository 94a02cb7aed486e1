// Plans of a joint graph by `best` (lib/algorithms/best), no worse than those of the other
// algorithms that plan joint graphs.
#pragma once

#include <optional>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/solver.h"
#include "lib/planner/joint_problem.h"

namespace ckplan {

// Within the budget, of least peak, or of the least product of peak and time, as the problem asks.
// Where nothing fits the budget, its plan of least peak.
Result<JointOutcome> SolveByBest(const JointProblem& problem, const SolveLimits& limits);

// Within the budget, which is given: the first plan that this search comes to which adds no more
// than `enough`; where there is none, the best that it finds; nothing if none fits.
Result<std::optional<JointOutcome>> SolveByBestUntil(const JointProblem& problem, Cost enough,
                                                     const SolveLimits& limits);

}  // namespace ckplan
