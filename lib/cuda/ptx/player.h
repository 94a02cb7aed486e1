// Plays a kernel: all its blocks, one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/cuda/ptx/findings.h"
#include "lib/cuda/ptx/memory.h"
#include "lib/cuda/ptx/program.h"
#include "lib/cuda/ptx/warp.h"

namespace ckplan::ptx {

// Runs the kernel with these parameters, laid out as Program::parameters says. Faults of the kernel
// are added to `findings`: accesses outside of allocations or without alignment, accesses of shared
// memory without a barrier between them or before it is written, and barriers that not all threads
// reach. Returns the number of instructions that the threads ran.
int64_t Play(const Program& program, const std::vector<unsigned char>& parameters,
             const LaunchShape& shape, GlobalMemory& global, Findings& findings);

}  // namespace ckplan::ptx
