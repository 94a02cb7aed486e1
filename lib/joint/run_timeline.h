// What lives when, for a sequence of runs: the Timeline (lib/schedule/timeline.h) that the arena
// places and plans tell of. Its buffers hold values (kTensor) or workspace; a version is one that a
// run made of a value that occupies memory.
#pragma once

#include <span>

#include "lib/joint/joint_graph.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

// The runs must have passed RunSimulator::Run. O(reads and writes of all runs).
Timeline BuildRunTimeline(const JointGraph& graph, std::span<const OpId> runs);

}  // namespace ckplan
