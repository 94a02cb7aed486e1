// What is in memory when the peak is reached first.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/schedule/timeline.h"

namespace ckplan {

struct PeakBuffer {
  int32_t buffer = -1;   // Index into Timeline::buffers.
  int32_t version = -1;  // What it holds: index into Timeline::versions; -1 if it is no tensor's.
};

// In order of allocation, buffers of no bytes left out; together Timeline::peak. A buffer that is
// handed on in the peak step itself, to an output written in place, counts as the output's.
// O(n log n) for n buffers.
std::vector<PeakBuffer> FindPeakBuffers(const Timeline& timeline);

}  // namespace ckplan
