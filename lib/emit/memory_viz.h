// Writes a plan as a memory snapshot of PyTorch for pytorch.org/memory_viz and
// torch.cuda._memory_viz, so that the predicted timeline opens in the viewer for measured ones.
//
// The file is a pickle of the result of torch.cuda.memory._snapshot. One segment is the plan's
// arena. Each buffer is a block at its offset there, allocated and freed when the schedule does so.
// Another segment holds the constants, which stay. The category of a block is the kind of its last
// contents. The stack of a block has, from the top: its contents, the tensor that they overwrote,
// the step that makes the buffer, and the modules around that step, innermost first.
#pragma once

#include <string>

#include "lib/explain/traced_plan.h"

namespace ckplan {

std::string WriteMemoryViz(const TracedPlan& traced);

}  // namespace ckplan
