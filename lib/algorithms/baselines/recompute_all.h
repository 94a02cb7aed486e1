// Keep nothing but the inputs: the forward pass frees as it goes, and backward begins by running
// again what it needs of it. The opposite extreme of keep-all.
//
// Guarantee  nothing waits in memory between the two passes, so nothing is kept; but the second
//            forward pass then holds what keep-all holds, so the peak is about keep-all's. It is
//            the canonical strategy {V} of Kusumoto et al. 2019, charged as Eq. 1 charges it.
// Cost       O(n).
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareRecomputeAll(const Problem& problem,
                                                            const SolveLimits& limits);

}  // namespace ckplan
