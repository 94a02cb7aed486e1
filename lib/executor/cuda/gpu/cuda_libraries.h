// Finds and opens cuBLAS and cuDNN at run time.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/gpu/cuda_device.h"

namespace ckplan::cuda {

// Fails with kUnsupported if one of the libraries is missing, too old, or cannot start.
Result<OpenedLibraries> OpenCudaLibraries(const DeviceOptions& options, void* stream);

// Opens cuDNN for a GPU that is not there, by the properties of one (CudnnConvolutions::Describe).
// cuBLAS is not needed: its workspace is what the options say. Convolutions can be prepared, and
// nothing can be run. Fails with kUnsupported if cuDNN is missing, too old, or refuses the GPU.
Result<OpenedLibraries> DescribeCudaLibraries(const DeviceOptions& options,
                                              const std::string& properties_json);

// Returns the workspace that cuBLAS is given for a product, in bytes.
int64_t ProductWorkspaceFor(const DeviceOptions& options);

}  // namespace ckplan::cuda
