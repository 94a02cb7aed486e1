// Finds and opens cuBLAS and cuDNN at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/gpu/cuda_device.h"

namespace ckplan::cuda {

// Fails with kUnsupported if a library is missing, too old, or cannot start.
Result<OpenedLibraries> OpenCudaLibraries(const DeviceOptions& options, void* stream);

// Opens cuDNN for a GPU that this machine doesn't have, from its properties
// (CudnnConvolutions::Describe). Doesn't need cuBLAS, whose workspace the options determine.
// Convolutions can be prepared, but nothing can run. Fails with kUnsupported if cuDNN is missing,
// too old, or rejects the GPU.
Result<OpenedLibraries> DescribeCudaLibraries(const DeviceOptions& options,
                                              const std::string& properties_json);

// Returns cuBLAS's workspace for a product, in bytes.
int64_t ProductWorkspaceFor(const DeviceOptions& options);

// A GPU that is only described: operators can be prepared for it, to find their workspaces and
// cuDNN's engines on a machine without a GPU. Nothing can run on it.

// The properties of a GPU that cuDNN reads. cuDNN's choice of engines also depends on the clock
// rates: these are the maximum rates that the driver reports.
struct GpuDescription {
  std::string name;  // "NVIDIA H100 SXM5 80 GB"
  int64_t memory_bytes = 0;
  int64_t compute_capability = 0;  // 90 for 9.0.
  int64_t multiprocessors = 0;
  int64_t shared_memory_per_block_bytes = 0;  // The maximum for one kernel.
  int64_t l2_cache_bytes = 0;
  int64_t clock_khz = 0;
  int64_t memory_clock_khz = 0;
};

// Formats the properties for cuDNN's attribute DEVICEPROP_JSON_REPRESENTATION.
std::string PropertiesJson(const GpuDescription& gpu);

// The device's memory is host memory, for operators' tables. kUnsupported: cuDNN is missing, too
// old, or doesn't know such a GPU.
Result<std::unique_ptr<Device>> OpenDescribedDevice(const DeviceOptions& options,
                                                    const GpuDescription& gpu);

}  // namespace ckplan::cuda
