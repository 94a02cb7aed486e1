// A plan as a memory snapshot of PyTorch, for pytorch.org/memory_viz and torch.cuda._memory_viz: so
// the predicted timeline opens in the viewer that shows measured ones.
//
// The file is a pickle of what torch.cuda.memory._snapshot returns. One segment is the plan's
// arena, and each buffer is a block at its offset there, allocated and freed when the schedule does
// so; another segment holds the constants, which stay. A block's category is the kind of what is in
// it last. The stack of a block is, from the top: what it holds, what that was written over, the
// step that makes the buffer, and the modules around that, the innermost first.
#pragma once

#include <string>

#include "lib/explain/traced_plan.h"

namespace ckplan {

std::string WriteMemoryViz(const TracedPlan& traced);

}  // namespace ckplan
