#include "lib/cuda/cuda_backend.h"
#include "lib/cuda/host/host_device.h"
#include "lib/exec/test_backend.h"

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() { return cuda::MakeBackend(cuda::MakeHostDevice()); }

}  // namespace ckplan
