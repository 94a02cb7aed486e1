// Loops over the threads of the backend. How work is cut never depends on how many threads there
// are, and no result depends on which of them did it.
#pragma once

#include <cstdint>

namespace ckplan::cpu {

// Items of one element of arithmetic each below which a second thread costs more than it saves.
inline constexpr int64_t kGrain = 16384;

// Calls body(begin, end) for consecutive ranges that together are [0, count), each of `grain` items
// but the last, in any order and at the same time.
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
