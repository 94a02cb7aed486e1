// A joint graph in the form that lib/schedule/replay.h reads: the kinds of steps are its
// operations.
//
// Only values that an operation makes, of a kind that IsCountedInPeak, are in memory; the others
// are counted with the constants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"
#include "lib/schedule/step_table.h"

namespace ckplan {

StepTable TableOf(const JointGraph& graph);
StepTable TableOf(const RunProblem& problem);

std::vector<int32_t> KindsOf(std::span<const OpId> runs);

}  // namespace ckplan
