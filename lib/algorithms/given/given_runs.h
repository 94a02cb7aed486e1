// Decisions about a joint graph as the runs that they lead to: what given.h is for forward graphs.
//
//   kept    Values that stay in memory between the phases. The operations of the phase `forward`
//   run
//           in the graph's own order; then all that they have made is dropped but these values,
//           what shares their memory, results, and what operations make that never run twice. The
//           rest of the graph runs in its own order, and what is read and not there is run again.
//           So the graph must say where the phase `backward` begins.
//   order   The runs themselves.
//
// The other forms decide on segments and copies of forward nodes, and are refused.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/decisions.h"

namespace ckplan {

// A plan of the graph. kUsage: there are no decisions (null), or they are in a form for forward
// graphs. kInvalidInput: they do not fit the graph; the message has all faults, the first ten in
// full. O(what is given + all runs and what they read).
Result<std::vector<OpId>> RunsOfDecisions(const JointGraph& graph, const Decisions* decisions);

}  // namespace ckplan
