#include "lib/cuda/host/host_device.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/cuda/gpu/cuda_device.h"
#include "lib/cuda/host/host_libraries.h"

namespace ckplan::cuda {

std::unique_ptr<Device> MakeHostDevice(const DeviceOptions& options) {
  Result<std::unique_ptr<Device>> device =
      OpenCudaDevice(options, [](const DeviceOptions&, void*) -> Result<OpenedLibraries> {
        return OpenedLibraries{MakeHostLibraries(), "libraries of the host"};
      });
  CKPLAN_CHECK(device.ok(), "the played machine has a GPU");
  return std::move(device).value();
}

}  // namespace ckplan::cuda
