// Finds and opens cuBLAS and cuDNN at run time.
#pragma once

#include "lib/base/result.h"
#include "lib/cuda/device.h"
#include "lib/cuda/gpu/cuda_device.h"

namespace ckplan::cuda {

// Fails with kUnsupported if one of the libraries is missing, too old, or cannot start.
Result<OpenedLibraries> OpenCudaLibraries(const DeviceOptions& options, void* stream);

}  // namespace ckplan::cuda
