// Dynamic checkpoint selection in linear time.
//
//   Hong, Tsai, Wang, Liu, Wu. "GPU Memory Usage Optimization for Backward Propagation in Deep
//   Network Training", 2024, section 4.2, Alg. 6.
//
// Idea. PyTorch frees an activation after its last use and holds one buffer as large as the largest
// output gradient of a segment. So memory is highest when a segment has just been recomputed, and
// the checkpoints after it have been freed: Eq. 12. Along a queue of undominated candidates j, U(i,
// j) rises and M(j) falls. The best j lies where they cross, and that point moves in one direction
// only.
//
// Guarantee  optimal for Eq. 12 on the chain of splitting vertices.
// Cost       O(n) queue operations, each with a binary search over record maxima.
// Paper      d_i -> sizes, C -> positions (layer_list.h, checkpoint_selection.h).
// Differs    - the range of j in Eq. 13 includes n, or the last segment could have no end;
//            - "j + 1" in line 13 is the next element of Q; read as an index it can be wrong;
//            - j* may have left Q by line 15: its nearest survivor takes over;
//            - the list begins at d_0, the graph's inputs; both ends are checkpoints;
//            - in a graph that is not a chain, inner tensors of a block are segment memory.
#pragma once

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareHongLinear(const Problem& problem,
                                                          const SolveLimits& limits);

}  // namespace ckplan
