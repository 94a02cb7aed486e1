// Removes the recomputations of a schedule whose results are never read.
#pragma once

#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// Returns the schedule without those forward runs, beyond the first of each node, whose results no
// later step reads. The schedule must free by liveness. O(reads of all steps).
Schedule WithoutUnreadRuns(const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
