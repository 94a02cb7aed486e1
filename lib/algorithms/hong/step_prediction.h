// Eq. 9 and 10 of Hong et al. 2024 for a plan by any algorithm, beside the steps of its schedule.
//
// They are about checkpoints on a chain, so a plan has values if it is one by what it does:
//   - along the list d_0, ..., d_N (layer_list.h) each of its segments ends at a candidate;
//   - of a segment but the last, of all that needs a gradient the end alone is kept, and the rest
//     is recomputed once at most;
//   - the last segment is kept, as its backward comes first: nothing of it is recomputed.
#pragma once

#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// One entry for each step of the schedule: a value where a training phase ends (training_phases.h),
// at the last step of the forward or of the backward of d_i. The graph's inputs, which d_0 stands
// for and the simulator counts with the constants, are subtracted. kUnsupported: the plan is none
// of checkpoints on the chain; the message is why. O(nodes + edges + steps).
Result<std::vector<std::optional<Bytes>>> PredictSteps(const TensorGraph& graph, const Plan& plan);

}  // namespace ckplan
