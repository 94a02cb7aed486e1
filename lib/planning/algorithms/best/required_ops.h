// Returns the operations that every plan must run: those that make a result or a parameter
// gradient, and their ancestors. Leaving out the others never raises a plan's peak or cost.
#pragma once

#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

std::vector<bool> RequiredOps(const RunProblem& problem);

// Returns the required operations in the graph's own order.
Runs RequiredOwnOrder(const RunProblem& problem);

}  // namespace ckplan
