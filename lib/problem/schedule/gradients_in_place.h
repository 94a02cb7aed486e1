// Gradients that are written over the values they were computed from (Chen et al. 2016, section 3).
// Fig. 1 of the paper writes a sigmoid in place of the layer below it and uses that memory again in
// the sigmoid's backward. Only static_allocation.h uses this: the simulator and the executor give
// every gradient memory of its own.
//
// An operation with an in-place pair (output, input) is elementwise. Its backward is too: it reads
// each element once. So the gradient of `input` may take over the memory of any equally large value
// that this backward is the last to read. The output is tried first, then the inputs of all pairs,
// then the output's gradient, each in the order of the pairs. A contribution that is added to a
// gradient may also be in place; the sum has memory of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

inline constexpr int32_t kOwnMemory = -1;

// For each buffer of the timeline: the earlier buffer whose memory it takes over, or kOwnMemory.
// Schedules with explicit frees have nothing in place. `timeline` must be that of the schedule. O(b
// log b) for b buffers, reads and pairs of all steps.
std::vector<int32_t> GradientsInPlace(const TensorGraph& graph, const Schedule& schedule,
                                      const Timeline& timeline);

}  // namespace ckplan
