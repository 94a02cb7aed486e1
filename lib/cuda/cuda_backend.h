// The CUDA backend: the executor's interface over one Device and this folder's kernels.
#pragma once

#include <memory>

#include "lib/backend/backend.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

std::unique_ptr<Backend> MakeBackend(std::unique_ptr<Device> device);

}  // namespace ckplan::cuda
