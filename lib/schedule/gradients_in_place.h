// Gradients that are written over what they were computed from: section 3 of Chen et al. 2016,
// whose Fig. 1 writes a sigmoid in place of the layer below it and uses that memory again in the
// sigmoid's backward. For static_allocation.h alone: the simulator and the executor give every
// gradient memory of its own.
//
// An operation with an in-place pair (output, input) is elementwise, and so is its backward, which
// goes over the elements once. So the gradient of `input` may take over the memory of anything
// equally large that this backward is the last to read. Tried first is the output, then the inputs
// of all pairs, then the output's gradient, each in the order of the pairs. A contribution that is
// added to a gradient may do so too; the sum has memory of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

inline constexpr int32_t kOwnMemory = -1;

// For each buffer of the timeline the one, earlier in it, whose memory it takes over, or
// kOwnMemory. Nothing is in place where frees are explicit. `timeline` is that of the schedule.
// O(b log b) for b buffers, reads and pairs of all steps.
std::vector<int32_t> GradientsInPlace(const TensorGraph& graph, const Schedule& schedule,
                                      const Timeline& timeline);

}  // namespace ckplan
