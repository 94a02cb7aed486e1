#include "lib/executor/cuda/testing/host/host_device.h"

#include <cstdlib>
#include <utility>

#include "lib/base/check.h"
#include "lib/executor/cuda/gpu/cuda_device.h"
#include "lib/executor/cuda/gpu/cuda_libraries.h"
#include "lib/executor/cuda/testing/test_backend.h"

namespace ckplan::cuda {

std::unique_ptr<Device> MakeHostDevice(DeviceOptions options) {
  setenv("CKEXEC_CUDA_PATH", CKPLAN_EMULATED_LIBRARIES, 1);
  options.workspace_limit = kTestWorkspace;
  Result<std::unique_ptr<Device>> device = OpenCudaDevice(options, OpenCudaLibraries);
  CKPLAN_CHECK(device.ok(), "the emulated machine has a GPU and its libraries");
  return std::move(device).value();
}

}  // namespace ckplan::cuda
