// The CUDA backend: implements the executor's interface with a Device and this folder's kernels.
#pragma once

#include <memory>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// Returns the operators that the backend supports on any device.
std::vector<OpSupport> Operators();

// `host` computes the operators that have no kernel for the GPU (host_fallback.h). It may be null:
// such operators are refused then.
std::unique_ptr<Backend> MakeBackend(std::unique_ptr<Device> device, std::unique_ptr<Backend> host);

// Opens the GPU and its libraries (gpu/cuda_device.h), and starts a kernel that does nothing.
// kUnsupported: the machine lacks something, or cannot run the kernels of this build; the message
// says what to install.
Result<std::unique_ptr<Backend>> OpenBackend(const DeviceOptions& options,
                                             std::unique_ptr<Backend> host);

}  // namespace ckplan::cuda
