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

// `stream` is the cudaStream_t in which the libraries work. OpenCudaLibraries (cuda_libraries.h)
// opens cuBLAS and cuDNN; tests use replacements.
using OpenLibraries =
    std::function<Result<OpenedLibraries>(const DeviceOptions& options, void* stream)>;

// Opens the first GPU that the driver shows; CUDA_VISIBLE_DEVICES can select another. Fails with
// kUnsupported and a one-line message for each reason: no driver, a driver that is too old, no GPU,
// a GPU older than the kernels, or no libraries. It starts no kernel: MakeBackend does.
Result<std::unique_ptr<Device>> OpenCudaDevice(const DeviceOptions& options,
                                               const OpenLibraries& open_libraries);

// Says why no kernel can run, by the status of the first one that was started: the driver may be
// older than the kernels' PTX, or unable to translate it. Also kUnsupported.
Result<Done> CheckFirstKernel(cudaError_t status);

}  // namespace ckplan::cuda
