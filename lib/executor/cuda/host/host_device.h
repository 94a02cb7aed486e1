// A GPU emulated on the host, so that every kernel, every index and every call of a library of the
// CUDA backend is tested on machines without a GPU. It is a CudaDevice over the emulated runtime
// (emulated/emulated_runtime.h), with cuBLAS and cuDNN replaced by plain loops
// (emulated/emulated_cublas.cc, emulated/emulated_cudnn.cc). It tests neither the vendor's
// libraries themselves nor speed. Only tests use it.
#pragma once

#include <memory>

#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// The workspace's limit is kTestWorkspace, whatever the options say.
std::unique_ptr<Device> MakeHostDevice(DeviceOptions options = {});

}  // namespace ckplan::cuda
