// A real GPU.
#pragma once

#include <memory>

#include "lib/base/result.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

// The first GPU that the driver shows; CUDA_VISIBLE_DEVICES can select another. Fails with
// kUnsupported, with a one-line message for each reason: no driver, a driver that is too old, no
// GPU, a GPU older than the kernels, no cuBLAS, no cuDNN.
Result<std::unique_ptr<Device>> OpenCudaDevice(const DeviceOptions& options);

}  // namespace ckplan::cuda
