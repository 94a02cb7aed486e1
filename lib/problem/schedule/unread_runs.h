// Removes the recomputations of a schedule whose results are never read.
#pragma once

#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the schedule without the runs, beyond the first of each node or operation, whose results
// no later step reads. The schedule must free by liveness. O(reads of all steps).
Schedule WithoutUnreadRuns(const TrainingStep& of, const Schedule& schedule);

}  // namespace ckplan
