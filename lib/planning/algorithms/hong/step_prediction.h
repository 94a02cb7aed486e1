// Evaluates Eq. 9 and 10 of Hong et al. 2024 for a plan by any algorithm, step by step.
//
// The equations are about checkpoints on a chain, so only plans of this form have values:
//   - along the list d_0, ..., d_N (layer_list.h) each segment of the plan ends at a candidate;
//   - each segment but the last keeps only its end, among the nodes that need a gradient, and
//     recomputes the others at most once;
//   - the last segment is kept, since its backward comes first: nothing in it is recomputed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

struct Plan;

inline constexpr std::string_view kStepPredictionName = "Eq. 9 and 10 of Hong et al.";
inline constexpr std::string_view kWhyNoJointPrediction =
    "it is of checkpoints on a chain, and this is a joint graph";

// Returns one entry for each step of the schedule. The entry has a value where a training phase
// ends (training_phases.h): at the last step of the forward or of the backward of d_i. The graph's
// inputs are subtracted, since d_0 includes them but the simulator counts them as constants.
// kUnsupported: the plan does not have this form; the message says why. O(nodes + edges + steps).
Result<std::vector<std::optional<Bytes>>> PredictSteps(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
