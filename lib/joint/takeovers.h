// Which writes of an operation may take over the memory of its reads, for searches and programs.
#pragma once

#include <vector>

#include "lib/joint/joint_graph.h"

namespace ckplan {

// The pairs of a write and the value that has the memory of a read: of equal sizes above zero, and
// where no second read is in the same memory, for of two versions that die at once neither leaves
// room (lib/schedule/replay.h). Those of one write together, in the order in which they are tried.
std::vector<InPlaceWrite> PossibleTakeovers(const JointGraph& graph, OpId id);

}  // namespace ckplan
