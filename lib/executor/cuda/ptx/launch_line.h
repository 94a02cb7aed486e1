// A launch of a kernel, as a line of JSON.
#pragma once

#include <string>

#include "lib/executor/cuda/ptx/player.h"

namespace ckplan::ptx {

// Returns the kernel, its grid and what was counted, as an object without a line break.
std::string LaunchLine(const std::string& kernel, const LaunchShape& shape,
                       const LaunchCounts& counts);

}  // namespace ckplan::ptx
