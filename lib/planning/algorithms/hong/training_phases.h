// The memory model of Hong et al. 2024 as a curve: the memory of their Algorithm 4 at the end of
// every training phase, for any choice of checkpoints (Fig. 5).
//
//   index 0          before the step: only the input d_0
//   1 .. N           forward of layer i: the checkpoints so far, and d_i itself
//   N+1 .. 2N        backward of layer i = 2N + 1 - index, as its work begins: Eq. 9 for a
//                    checkpoint, Eq. 10 between two checkpoints
//   2N+1             after the step: d_0 again
//
//   m(i)  = sum of checkpoints up to i + sum of d_k, h < k < i + max of d_k, h <= k < i     (Eq. 9)
//   m(i') = sum of checkpoints up to h + sum of d_k, h < k <= i' + the same maximum        (Eq. 10)
//
// Here d_h and d_i are neighbouring checkpoints, and the maximum is the gradient buffer that
// PyTorch holds for a whole segment. The largest m(i) is Eq. 12 (checkpoint_selection.h).
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/algorithms/hong/layer_list.h"

namespace ckplan {

// Returns 2N + 2 values for the list d_0, ..., d_N. `checkpoints` holds positions, ascending, with
// both ends. O(N).
std::vector<Bytes> PredictTrainingPhases(const LayerList& list,
                                         const std::vector<size_t>& checkpoints);

}  // namespace ckplan
