// How much memory a schedule needs under the three allocation strategies of Chen et al. 2016,
// section 3. The figures are for comparison: plans carry the arena (arena.h), which is never far
// from the peak.
//
//   none      every result and every gradient has memory of its own
//   inplace   an output may take over the memory of an input that dies there, and a gradient may
//             take over the memory of a value that it was computed from (static_allocation.cc), so
//             this and the next figure may be below the simulated peak
//   sharing   in-place, and the memory of dead values is used again: the algorithm of Fig. 2
//
// Fig. 2 walks along the schedule with a counter of pending reads for each result. When a counter
// reaches zero, the result's tag, which names a piece of memory, goes back to the pool, and a later
// result takes it from there. A piece is as large as the largest result that ever has its tag. The
// paper does not say which tag a result takes: here it takes the smallest that is large enough, or
// else the largest, which grows. Among equals it takes the one made first.
//
// Workspaces are left out, as in the paper (section 5.1), and so are constants.
#pragma once

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

enum class ArenaStrategy { kNone, kInplace, kSharing };

// The schedule must have passed Simulator::Run. O(b log b) for b buffers and reads.
Bytes StaticAllocation(const TensorGraph& graph, const Schedule& schedule, ArenaStrategy strategy);

}  // namespace ckplan
