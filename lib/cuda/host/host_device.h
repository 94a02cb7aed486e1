// A GPU played by the host, so that every kernel, every index and every call of a library of the
// CUDA backend is tested on machines without one. What it cannot show: the vendor's libraries
// themselves, and speed. For tests alone.
#pragma once

#include <memory>

#include "lib/cuda/device.h"

namespace ckplan::cuda {

std::unique_ptr<Device> MakeHostDevice(const DeviceOptions& options = {});

}  // namespace ckplan::cuda
