// cuBLAS and cuDNN, found and opened at run time.
#pragma once

#include "lib/base/result.h"
#include "lib/cuda/device.h"
#include "lib/cuda/gpu/cuda_device.h"

namespace ckplan::cuda {

// Fails with kUnsupported if one of them is missing, too old, or cannot start.
Result<OpenedLibraries> OpenCudaLibraries(const DeviceOptions& options, void* stream);

}  // namespace ckplan::cuda
