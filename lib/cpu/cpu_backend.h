// The backend of this machine's processor: oneDNN where it has a primitive, own kernels elsewhere.
#pragma once

#include <memory>

#include "lib/backend/backend.h"

namespace ckplan::cpu {

// `threads`: 0 for one on each processor that this process may use. Sets the number of OpenMP
// threads of the process: bits compare only between runs of the same number.
std::unique_ptr<Backend> MakeCpuBackend(int threads);

}  // namespace ckplan::cpu
