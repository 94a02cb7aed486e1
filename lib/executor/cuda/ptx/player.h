// Plays a kernel: all its blocks, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/executor/cuda/ptx/memory.h"
#include "lib/executor/cuda/ptx/program.h"
#include "lib/executor/cuda/ptx/warp.h"

namespace ckplan::ptx {

struct LaunchCounts {
  int64_t instructions = 0;       // Each thread counts.
  int64_t warp_instructions = 0;  // Each warp counts, however many of its threads take part.
  Traffic reads, writes;          // In global memory; zero if they are not counted.
};

// Runs the kernel with these parameters, laid out as Program::parameters says. Faults of the kernel
// are added to `findings`: accesses outside of allocations or without alignment, accesses of shared
// memory without a barrier between them or before it is written, and barriers that not all threads
// reach. Counting traffic takes time, so it is done only if `counts_traffic` says so.
LaunchCounts Play(const Program& program, const std::vector<unsigned char>& parameters,
                  const LaunchShape& shape, GlobalMemory& global, Findings& findings,
                  bool counts_traffic);

// A launch of a kernel, as a line of JSON.

// Returns the kernel, its grid and what was counted, as an object without a line break.
std::string LaunchLine(const std::string& kernel, const LaunchShape& shape,
                       const LaunchCounts& counts);

}  // namespace ckplan::ptx
