// The writes of an operation that may take over the memory of its reads, for searches and programs.
#pragma once

#include <vector>

#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

// Returns pairs of a write and the value that has the memory of a read, with equal sizes above
// zero. The memory must have no second read in it, because two versions that die at once free it
// for neither write (lib/problem/schedule/replay.h). The pairs of one write are adjacent, in the
// order in which they are tried.
std::vector<InPlaceWrite> PossibleTakeovers(const JointGraph& graph, OpId id);

}  // namespace ckplan
