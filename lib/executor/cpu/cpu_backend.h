// The backend for this machine's CPU: oneDNN where it has a primitive, our own kernels elsewhere.
#pragma once

#include <memory>

#include "lib/executor/backend/backend.h"

namespace ckplan::cpu {

// `threads` is the number of threads; 0 means one per processor that this process may use. Sets the
// process's number of OpenMP threads. Results are bitwise equal only between runs with the same
// number of threads.
std::unique_ptr<Backend> MakeCpuBackend(int threads);

}  // namespace ckplan::cpu
