// Evaluates Eq. 9 and 10 of Hong et al. 2024 for any algorithm's plan, step by step.
//
// The equations are about checkpoints on a chain, so they only apply to plans of this form:
//   - along the list d_0, ..., d_N (checkpoint_selection.h) each segment of the plan ends at a
//   candidate;
//   - each segment but the last keeps only its end, among the nodes that need a gradient, and
//     recomputes the others at most once;
//   - the last segment is kept, since its backward comes first: nothing in it is recomputed.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

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

// Returns 2N + 2 values for the list d_0, ..., d_N. `checkpoints` holds positions, ascending, with
// both ends. O(N).
std::vector<Bytes> PredictTrainingPhases(const LayerList& list,
                                         const std::vector<size_t>& checkpoints);

struct Plan;

inline constexpr std::string_view kStepPredictionName = "Eq. 9 and 10 of Hong et al.";
inline constexpr std::string_view kWhyNoJointPrediction =
    "it needs checkpoints on a chain, and this is a joint graph";

// Returns one entry per action of the schedule. An entry has a value at the end of a training
// phase: the last action of the forward or the backward of d_i. Subtracts the graph's inputs,
// because d_0 includes them but the simulator counts them as constants. kUnsupported: the plan
// doesn't have this form; the message says why. O(nodes + edges + steps).
Result<std::vector<std::optional<Bytes>>> PredictSteps(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
