// Keeps nothing but the inputs: the forward pass frees each tensor after its last use, and backward
// begins by recomputing what it needs. This is the opposite extreme of keep-all.
//
// Guarantee  nothing is kept between the two passes. But the recomputed forward pass holds what
//            keep-all holds, so the peak is about keep-all's. It is the canonical strategy {V} of
//            Kusumoto et al. 2019, with the overhead of its Eq. 1.
// Cost       O(n).
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareRecomputeAll(const Problem& problem,
                                                            const SolveLimits& limits);

}  // namespace ckplan
