// What chen-drop-cheap and chen-drop-bn-relu share: the plan that keeps some results from their
// forward run on, and recomputes the others on demand.
#pragma once

#include <string>

#include "lib/plan/solver.h"

namespace ckplan {

// `result.paper` is the memory of what is kept, and the forward cost of what is dropped.
SolveOutcome PlanOfKept(const Problem& problem, IdVector<NodeId, bool> is_kept,
                        std::string guarantee);

}  // namespace ckplan
