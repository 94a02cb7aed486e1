// The CUDA backend: implements the executor's interface with a Device and the kernels of this
// folder.
#pragma once

#include <memory>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

// Returns the operators that the backend supports on any device.
std::vector<OpSupport> Operators();

std::unique_ptr<Backend> MakeBackend(std::unique_ptr<Device> device);

}  // namespace ckplan::cuda
