// The CUDA backend: the executor's interface over one Device and this folder's kernels.
#pragma once

#include <memory>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

// What it runs on any device.
std::vector<OpSupport> Operators();

std::unique_ptr<Backend> MakeBackend(std::unique_ptr<Device> device);

}  // namespace ckplan::cuda
