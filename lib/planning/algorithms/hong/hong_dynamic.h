// Dynamic checkpoint selection in quadratic time.
//
//   Hong, Tsai, Wang, Liu, Wu. "GPU Memory Usage Optimization for Backward Propagation in Deep
//   Network Training", 2024, section 4.1, Alg. 5.
//
// Idea. PyTorch frees an activation after its last use and holds one buffer as large as the largest
// output gradient of a segment. So memory is highest when a segment has just been recomputed, and
// the checkpoints after it have been freed: Eq. 12, solved by the recursion of Eq. 13 over all
// pairs.
//
// Guarantee  optimal for Eq. 12 on the chain of splitting vertices.
// Cost       O(n^2); refused above kMaxDynamicCandidates, where hong-linear gives the same result.
// Paper      d_i -> sizes, C -> positions (layer_list.h, checkpoint_selection.h).
// Differs    - the range of j in Eq. 13 includes n, or the last segment could have no end;
//            - ties keep the nearest next checkpoint;
//            - the list begins at d_0, the graph's inputs; both ends are checkpoints;
//            - in a graph that is not a chain, inner tensors of a block are segment memory.
#pragma once

#include <cstddef>
#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

inline constexpr size_t kMaxDynamicCandidates = 30'000;  // This takes a second or two.

Result<std::unique_ptr<PreparedSolver>> PrepareHongDynamic(const Problem& problem,
                                                           const SolveLimits& limits);

}  // namespace ckplan
