// A real GPU.
#pragma once

#include <memory>

#include "lib/base/result.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

// The first GPU that the driver shows; CUDA_VISIBLE_DEVICES chooses another.
// kUnsupported: no driver, an old one, no GPU, one that is older than the kernels, no cuBLAS, no
// cuDNN: each with its own message of one line.
Result<std::unique_ptr<Device>> OpenCudaDevice(const DeviceOptions& options);

}  // namespace ckplan::cuda
