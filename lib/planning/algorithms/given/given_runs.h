// Turns decisions about a joint graph into runs, as given.h does for forward graphs.
//
//   kept    Values that stay in memory between the phases. The operations of the phase `forward`
//           run in the graph's own order. Then everything they made is dropped except these values,
//           values that share their memory, results, and results of operations that never run
//           twice. The rest of the graph runs in its own order, and values that are read but
//           missing are recomputed. So the graph must say where the phase `backward` begins.
//   order   The runs themselves and, on a device with a link to its host, transfers among them.
//
// The other forms decide on segments and copies of forward nodes, and are refused.
#pragma once

#include "lib/base/result.h"
#include "lib/planning/plan/decisions.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns the steps of the decisions for a joint graph. kUsage: there are no decisions (null), or
// they are in a form
// for forward graphs. kInvalidInput: they do not fit the graph; the message counts all faults and
// gives the first ten in full. O(size of the decisions + all runs and the values they read).
Result<Schedule> StepsOfDecisions(const TrainingStep& step, const Decisions* decisions);

}  // namespace ckplan
