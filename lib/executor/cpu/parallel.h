// Loops on the backend's threads. The division of work never depends on the number of threads, and
// no result depends on which thread computed it.
#pragma once

#include <cstdint>

namespace ckplan::cpu {

// Cast a call's untyped buffers to floats; null stays null.
inline const float* Floats(const void* at) { return static_cast<const float*>(at); }
inline float* Floats(void* at) { return static_cast<float*>(at); }

// With fewer items, each of one arithmetic operation, a second thread isn't worthwhile.
inline constexpr int64_t kGrain = 16384;

// Calls body(begin, end) for consecutive ranges that cover [0, count), in any order and
// concurrently. Each range but the last has `grain` items.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  const int64_t chunks = (count + grain - 1) / grain;
  if (chunks <= 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t begin = chunk * grain;
    const int64_t end = begin + grain < count ? begin + grain : count;
    body(begin, end);
  }
}

}  // namespace ckplan::cpu
