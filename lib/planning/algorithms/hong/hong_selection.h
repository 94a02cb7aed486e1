// Checkpoint selection: least checkpoints plus largest segment.
//
//   Hong, Tsai, Wang, Liu, Wu. "GPU Memory Usage Optimization for Backward Propagation in Deep
//   Network Training", 2024, section 3, Alg. 3.
//
// Idea. For every limit on a segment's memory the least memory of checkpoints is a shortest path
// with a sliding minimum (Eq. 7 and 8); the best sum over all limits is the answer (Eq. 6).
//
// Guarantee  optimal for Eq. 6 on the chain of splitting vertices.
// Cost       O(n) for each limit that is tried. Few limits are tried; the paper tries all, in
//            O(n^3).
// Paper      d_i -> sizes, C -> positions, s -> limit (layer_list.h, checkpoint_selection.h).
// Differs    - Eq. 8 as printed does not force d_n into C; Eq. 6's definition does, and so do we;
//            - a segment memory of 0 is a valid limit;
//            - the list begins at d_0, the graph's inputs; both ends are checkpoints;
//            - in a graph that is not a chain, inner tensors of a block are segment memory.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareHongSelection(const Problem& problem,
                                                             const SolveLimits& limits);

}  // namespace ckplan
