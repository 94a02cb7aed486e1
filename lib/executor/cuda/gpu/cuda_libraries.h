// Finds and opens cuBLAS and cuDNN at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/gpu/cuda_device.h"

namespace ckplan::cuda {

// Fails with kUnsupported if one of the libraries is missing, too old, or cannot start.
Result<OpenedLibraries> OpenCudaLibraries(const DeviceOptions& options, void* stream);

// Opens cuDNN for a GPU that this machine lacks, by its properties (CudnnConvolutions::Describe).
// cuBLAS is not needed: its workspace is what the options say. Convolutions can be prepared, and
// nothing can be run. Fails with kUnsupported if cuDNN is missing, too old, or refuses the GPU.
Result<OpenedLibraries> DescribeCudaLibraries(const DeviceOptions& options,
                                              const std::string& properties_json);

// Returns the workspace that cuBLAS is given for a product, in bytes.
int64_t ProductWorkspaceFor(const DeviceOptions& options);

// A GPU that is not there, only described: operators can be prepared for it, so that their
// workspaces and the engines of cuDNN are known on a machine without a GPU. Nothing can run on it.

// What cuDNN asks about a GPU, as far as GPUs differ in it. cuDNN's choice of engines depends on
// the clock rates, too: they are the highest ones, as the driver reports them.
struct GpuDescription {
  std::string name;  // "NVIDIA H100 SXM5 80 GB"
  int64_t memory_bytes = 0;
  int64_t compute_capability = 0;  // 90 for 9.0.
  int64_t multiprocessors = 0;
  int64_t shared_memory_per_block_bytes = 0;  // The most that a kernel can ask for.
  int64_t l2_cache_bytes = 0;
  int64_t clock_khz = 0;
  int64_t memory_clock_khz = 0;
};

// Returns the properties in the form of cuDNN's attribute DEVICEPROP_JSON_REPRESENTATION.
std::string PropertiesJson(const GpuDescription& gpu);

// Its memory is memory of the host, which tables of operators use. kUnsupported: there is no cuDNN,
// or it is too old, or it does not know such a GPU.
Result<std::unique_ptr<Device>> OpenDescribedDevice(const DeviceOptions& options,
                                                    const GpuDescription& gpu);

}  // namespace ckplan::cuda
