#include "lib/executor/core/testing/test_backend.h"
#include "lib/executor/cpu/cpu_backend.h"
#include "lib/executor/cuda/cuda_backend.h"
#include "lib/executor/cuda/testing/host/host_device.h"

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() {
  return cuda::MakeBackend(cuda::MakeHostDevice(), cpu::MakeCpuBackend(2));
}

}  // namespace ckplan
