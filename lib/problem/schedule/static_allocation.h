// Computes the memory of a schedule with the allocation strategies of Chen et al. 2016, section 3,
// for comparison. Plans use the arena (arena.h), which is close to the peak.
//
//   none      each result and each gradient has its own memory
//   inplace   an output may reuse the memory of an input that dies, and a gradient may reuse the
//             memory of a value from which it is computed (static_allocation.cc); so this and the
//             next figure may be below the simulated peak
//   sharing   like inplace, and the memory of dead values is reused: the algorithm of Fig. 2
//   coloring  like inplace, and values that do not conflict get the same colour: what the paper
//             names as the way that costs O(n^2) (ColoredTotal in interval_placement.h)
//
// Fig. 2 walks along the schedule with a counter of pending reads per result. When a counter
// reaches zero, the result's tag, which identifies a piece of memory, returns to the pool for later
// results. A piece has the size of the largest result with its tag. The paper does not say which
// tag a result takes: we take the smallest that is large enough, otherwise the largest, which
// grows. Ties go to the oldest tag.
//
// Workspaces (as in the paper, section 5.1) and constants do not count.
#pragma once

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

enum class ArenaStrategy { kNone, kInplace, kSharing, kColoring };

// The schedule must have passed Simulator::Run. O(b log b) for b buffers and reads; kColoring
// O(b^2 log b).
Bytes StaticAllocation(const TensorGraph& graph, const Schedule& schedule, ArenaStrategy strategy);

}  // namespace ckplan
