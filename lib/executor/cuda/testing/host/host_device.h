// A GPU emulated on the host, which tests every kernel, index and library call of the CUDA backend
// without a GPU. It is a CudaDevice on the emulated runtime (emulated/emulated_runtime.h), with
// cuBLAS and cuDNN emulated by simple loops (emulated/emulated_cublas.cc,
// emulated/emulated_cudnn.cc). It tests neither the vendor's libraries nor speed. Only tests use
// it.
#pragma once

#include <memory>

#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// Always limits the workspace to kTestWorkspace.
std::unique_ptr<Device> MakeHostDevice(DeviceOptions options = {});

}  // namespace ckplan::cuda
