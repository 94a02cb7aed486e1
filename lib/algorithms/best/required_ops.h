// The operations that every plan must run: those that make a result or a parameter gradient, and
// their ancestors. To leave the others out of a plan never raises its peak or its cost.
#pragma once

#include <vector>

#include "lib/joint/run_problem.h"

namespace ckplan {

std::vector<bool> RequiredOps(const RunProblem& problem);

// They alone, in the graph's own order.
Runs RequiredOwnOrder(const RunProblem& problem);

}  // namespace ckplan
