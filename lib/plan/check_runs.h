// Checks a plan for a joint graph, as check.h does for a forward graph: replays the runs and
// compares what it finds with everything the plan claims.
//
// It implements the meaning of lib/schedule/replay.h a second time, without regard to speed: it
// finds deaths from the end of the plan, it lays memory out by the plan's own offsets, and it adds
// up the figures of the graph itself. It shares no code with lib/joint except the graph. O(n log n)
// for n reads and writes of all runs.
#pragma once

#include <string>
#include <vector>

#include "lib/joint/joint_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

// Everything that is wrong, one line each; empty for a sound plan. Where the runs themselves are at
// fault, that is the only line: figures of no plan mean nothing.
//   steps       only runs of operations that exist; each read made before; no second run of what
//               must not run twice; every result and parameter gradient made
//   memory      peak, its step and what is in memory there, the arena's size, and that no two
//               buffers that live at the same time overlap in it
//   the rest    baseline, overhead, costs, constants, lower bound, budget, rows of operations
std::vector<std::string> CheckJointPlan(const JointGraph& graph, const Plan& plan);

}  // namespace ckplan
