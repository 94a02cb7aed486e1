// Which values the plans of a request may move to the host.
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/run_solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the terms of a request with a link for a joint graph. All movable values may be moved
// (MovableValues in lib/problem/schedule/step_table.h) but these:
//   - what kept or recomputed operations make, and what `never_offload` names, by the name of the
//     value, of an alias of it, or of the operation that makes one of them;
//   - in a step that was made from a forward graph, gradients with aliases: a sum is written over
//     the memory of the one before (lib/problem/schedule/expand.h), which a copy under way must not
//     meet.
// kUsage: a pattern fits nothing. Other errors are those of ConstraintsOf (constraints.h).
Result<OffloadTerms> OffloadTermsOf(const TrainingStep& step, const PlanRequest& request);

}  // namespace ckplan
