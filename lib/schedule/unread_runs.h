// Removes what a schedule computes for nobody.
#pragma once

#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// The schedule, which frees by liveness, without the forward runs, beyond the first of each node,
// whose results no later step reads. O(reads of all steps).
Schedule WithoutUnreadRuns(const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
