// The contents of memory when the peak is first reached.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/schedule/timeline.h"

namespace ckplan {

struct PeakBuffer {
  int32_t buffer = -1;  // Index into Timeline::buffers.
  // Index into Timeline::versions of the version that it holds; -1 if it holds no tensor.
  int32_t version = -1;
};

// Lists the buffers in order of allocation, without those of no bytes; their sum is Timeline::peak.
// A buffer that is handed on to an output written in place in the peak step itself counts as the
// output's. O(n log n) for n buffers.
std::vector<PeakBuffer> FindPeakBuffers(const Timeline& timeline);

}  // namespace ckplan
