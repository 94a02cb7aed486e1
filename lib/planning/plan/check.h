// The checker judges plans: it replays the schedule a second time, plainly (check_replay.h), and
// shares no code with the solvers, the simulator or the arena. It runs on every plan before the
// plan is shown or written, and on every plan file that is read.
//
// It recomputes every figure and looks for: steps that the graph does not have or that must not run
// twice, reads of absent tensors, something needed that never runs, an order of steps that the
// request does not allow, memory left at the end, two buffers in one place at one time, transfers
// to the host against their rules (lib/problem/schedule/transfers.h), figures or
// decisions that differ from the steps, a peak above the budget, a bound that does not hold, and
// names and sizes of nodes that differ from the graph's.
// docs/plan-format.md lists what the checker cannot know.
#pragma once

#include <string>
#include <vector>

#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// One line for each fault; empty if the plan is correct. O(steps x (reads + log buffers)).
std::vector<std::string> CheckPlan(const TrainingStep& step, const Plan& plan);

}  // namespace ckplan
