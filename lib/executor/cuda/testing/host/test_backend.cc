#include "lib/executor/cuda/testing/test_backend.h"

#include "lib/executor/core/testing/test_backend.h"
#include "lib/executor/cpu/cpu_backend.h"
#include "lib/executor/cuda/cuda_backend.h"
#include "lib/executor/cuda/testing/host/host_device.h"

namespace ckplan::cuda {

std::unique_ptr<Backend> MakeHost() { return cpu::MakeCpuBackend(2); }

std::unique_ptr<Backend> MakeTestBackend(DeviceOptions options) {
  return MakeBackend(MakeHostDevice(options), MakeHost());
}

}  // namespace ckplan::cuda

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() { return cuda::MakeTestBackend(); }

}  // namespace ckplan
