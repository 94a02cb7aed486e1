// A real GPU.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// The vendor's libraries, opened for one device, and a description of their versions.
struct OpenedLibraries {
  std::unique_ptr<Libraries> libraries;
  std::string versions;
};

// The libraries work in `stream`, a cudaStream_t. OpenCudaLibraries (cuda_libraries.h) opens cuBLAS
// and cuDNN; tests use replacements.
using OpenLibraries =
    std::function<Result<OpenedLibraries>(const DeviceOptions& options, void* stream)>;

// Opens the driver's first GPU; CUDA_VISIBLE_DEVICES can select another. Fails with kUnsupported
// and a one-line message if there is no driver, the driver is too old, there is no GPU, the GPU is
// older than the kernels, or libraries are missing. Starts no kernel; MakeBackend does.
Result<std::unique_ptr<Device>> OpenCudaDevice(const DeviceOptions& options,
                                               const OpenLibraries& open_libraries);

// Explains, from the status of the first kernel launch, why no kernel can run: the driver may be
// older than the kernels' PTX, or unable to translate it. kUnsupported if so.
Result<Done> CheckFirstKernel(cudaError_t status);

}  // namespace ckplan::cuda
