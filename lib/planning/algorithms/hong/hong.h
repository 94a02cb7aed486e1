// The algorithms of Hong et al. 2024. All three turn checkpoints in a layer list into a plan.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

// Returns a solver without a knob for the plan that cuts the graph after each checkpoint. `scope`
// names the choices among which the checkpoints are optimal. `result.paper` holds the objective,
// and the forward cost of all nodes except the checkpoints.
std::unique_ptr<PreparedSolver> PlanFromCheckpoints(const Problem& problem, const LayerList& list,
                                                    const Checkpoints& checkpoints,
                                                    std::string_view scope);

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
// Cost       O(n^2), limited to kMaxDynamicCandidates; hong-linear gives the same result.
// Paper      d_i -> sizes, C -> positions (checkpoint_selection.h, checkpoint_selection.h).
// Differs    - the range of j in Eq. 13 includes n, or the last segment could have no end;
//            - ties keep the nearest next checkpoint;
//            - the list begins at d_0, the graph's inputs; both ends are checkpoints;
//            - in a graph that is not a chain, inner tensors of a block are segment memory.
inline constexpr size_t kMaxDynamicCandidates = 30'000;  // Takes a second or two.

Result<std::unique_ptr<PreparedSolver>> PrepareHongDynamic(const Problem& problem,
                                                           const SolveLimits& limits);

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
// Paper      d_i -> sizes, C -> positions (checkpoint_selection.h, checkpoint_selection.h).
// Differs    - the range of j in Eq. 13 includes n, or the last segment could have no end;
//            - "j + 1" in line 13 is the next element of Q; read as an index it can be wrong;
//            - j* may have left Q by line 15: its nearest survivor takes over;
//            - the list begins at d_0, the graph's inputs; both ends are checkpoints;
//            - in a graph that is not a chain, inner tensors of a block are segment memory.
Result<std::unique_ptr<PreparedSolver>> PrepareHongLinear(const Problem& problem,
                                                          const SolveLimits& limits);

// Checkpoint selection: minimises checkpoints plus largest segment.
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
// Paper      d_i -> sizes, C -> positions, s -> limit (checkpoint_selection.h,
// checkpoint_selection.h). Differs    - Eq. 8 as printed does not force d_n into C; Eq. 6's
// definition does, and so do we;
//            - a segment memory of 0 is a valid limit;
//            - the list begins at d_0, the graph's inputs; both ends are checkpoints;
//            - in a graph that is not a chain, inner tensors of a block are segment memory.
Result<std::unique_ptr<PreparedSolver>> PrepareHongSelection(const Problem& problem,
                                                             const SolveLimits& limits);

}  // namespace ckplan
