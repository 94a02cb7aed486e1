// Decides which values a request's plans may move to the host.
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/run_solver.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the offload terms of a request with a link, for a joint graph. All movable values may
// move (MovableValues in lib/problem/schedule/step_table.h) except:
//   - the results of kept or recomputed operations, and what `never_offload` names: a value, an
//     alias of it, or the operation that produces one of them;
//   - gradients with aliases, in a step expanded from a forward graph: a sum overwrites the memory
//     of the one before (lib/problem/schedule/expand.h), which must not happen during a copy.
// Fails with kUsage if a pattern matches nothing. Other errors are those of ConstraintsOf
// (constraints.h).
Result<OffloadTerms> OffloadTermsOf(const TrainingStep& step, const PlanRequest& request);

}  // namespace ckplan
