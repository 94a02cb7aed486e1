// Random schedules with transfers. Most of them are valid, and the others break one rule or
// another. The same seed gives the same schedule on every platform.
#pragma once

#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Returns a random plan of the graph with transfers of the values that may be moved. With a small
// probability, a step is at the wrong place, lacking or of a value that must stay.
Schedule RandomMoves(Rng& rng, const JointGraph& graph);
// Returns these runs with transfers at random. The plan is often valid if the runs are; it is not
// if it loads what nothing reads.
Schedule WithRandomMoves(Rng& rng, const JointGraph& graph, const std::vector<OpId>& runs);

// Returns a link on which copies take about as long as the operations of a random graph.
Link RandomLink(Rng& rng);

}  // namespace ckplan
