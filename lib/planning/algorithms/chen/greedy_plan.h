// The part that chen-greedy and chen-search share: the plan of one setting of B in Chen's Alg. 3.
#pragma once

#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/chain.h"

namespace ckplan {

// Makes the plan. `result.paper` has the figures of Alg. 3: B, x + y, and the forward cost of every
// node with m(v) = 1.
SolveOutcome GreedyPlan(const Problem& problem, const Chain& chain, Bytes budget);

}  // namespace ckplan
