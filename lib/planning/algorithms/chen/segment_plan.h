// The part that chen-sqrt and chen-count share: the plan of a chain that is cut into segments.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/chain.h"

namespace ckplan {

// Makes the plan. `segment_of_block` has the segment of each block of the chain, ascending from 0
// without gaps. `result.paper` has x + y of Alg. 3, the sum of the results at the cuts and the
// largest segment with its cut, and the forward cost of every node that is not at a cut.
SolveOutcome PlanOfSegments(const Problem& problem, const Chain& chain,
                            const std::vector<int32_t>& segment_of_block);

}  // namespace ckplan
