// The backend for this machine's CPU: oneDNN where it has a primitive, our own kernels elsewhere.
#pragma once

#include <memory>

#include "lib/executor/backend/backend.h"

namespace ckplan::cpu {

// `threads` is the number of threads; 0 means one for each processor that this process may use.
// Sets the number of OpenMP threads of the process. Results are bitwise equal only between runs
// with equal numbers of threads.
std::unique_ptr<Backend> MakeCpuBackend(int threads);

}  // namespace ckplan::cpu
