// The checker validates plans: it replays the schedule with simple, independent code
// (check_replay.h) that shares nothing with the solvers, the simulator or the arena. It checks
// every plan before it is shown or written, and every plan file that is read.
//
// It recomputes every figure and reports: steps that the graph does not have or that must not run
// twice, reads of absent tensors, required operations that never run, an order of steps that the
// request forbids, memory left at the end, overlapping buffers, invalid transfers to the host
// (lib/problem/schedule/transfers.h), figures or decisions that contradict the steps, a peak above
// the budget, a wrong bound, and names and sizes of nodes that differ from the graph's.
// docs/plan-format.md lists what the checker can't verify.
#pragma once

#include <string>
#include <vector>

#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// Returns one line per fault; empty if the plan is correct. O(steps x (reads + log buffers)).
std::vector<std::string> CheckPlan(const TrainingStep& step, const Plan& plan);

}  // namespace ckplan
