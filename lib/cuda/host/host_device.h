// A GPU played by the host, so that every kernel, every index and every call of a library of the
// CUDA backend is tested on machines without a GPU: CudaDevice over the played runtime
// (played/played_runtime.h), and the libraries' work in plain loops. It does not test the vendor's
// libraries themselves, nor speed. Only for tests.
#pragma once

#include <memory>

#include "lib/cuda/device.h"

namespace ckplan::cuda {

std::unique_ptr<Device> MakeHostDevice(const DeviceOptions& options = {});

}  // namespace ckplan::cuda
