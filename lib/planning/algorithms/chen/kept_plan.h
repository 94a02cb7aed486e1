// The part that chen-drop-cheap and chen-drop-bn-relu share: a plan that keeps some results from
// their forward run, and recomputes the others on demand.
#pragma once

#include <string>

#include "lib/planning/plan/solver.h"

namespace ckplan {

// Makes the plan. `result.paper` has the memory of kept results, and the forward cost of dropped
// ones.
SolveOutcome PlanOfKept(const Problem& problem, IdVector<NodeId, bool> is_kept,
                        std::string guarantee);

}  // namespace ckplan
