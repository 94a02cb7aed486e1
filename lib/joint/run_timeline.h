// The Timeline (lib/schedule/timeline.h) of a sequence of runs, which the arena places and plans
// describe. Its buffers hold values (kTensor) or workspace. A version is one run's version of a
// value that occupies memory.
#pragma once

#include <span>

#include "lib/joint/joint_graph.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

// The runs must have passed RunSimulator::Run. O(reads and writes of all runs).
Timeline BuildRunTimeline(const JointGraph& graph, std::span<const OpId> runs);

}  // namespace ckplan
