// A real GPU.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

// The vendor's libraries, opened for one device, and their versions in words.
struct OpenedLibraries {
  std::unique_ptr<Libraries> libraries;
  std::string versions;
};

// `stream`: the cudaStream_t in which they work. OpenCudaLibraries (cuda_libraries.h) opens cuBLAS
// and cuDNN; tests have others.
using OpenLibraries =
    std::function<Result<OpenedLibraries>(const DeviceOptions& options, void* stream)>;

// The first GPU that the driver shows; CUDA_VISIBLE_DEVICES can select another. Fails with
// kUnsupported, with a one-line message for each reason: no driver, a driver that is too old, no
// GPU, a GPU older than the kernels, or no libraries.
Result<std::unique_ptr<Device>> OpenCudaDevice(const DeviceOptions& options,
                                               const OpenLibraries& open_libraries);

}  // namespace ckplan::cuda
