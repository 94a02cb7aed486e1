#include "lib/cuda/test_backend.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lib/cuda/cuda_backend.h"
#include "lib/cuda/gpu/cuda_device.h"
#include "lib/cuda/gpu/cuda_libraries.h"

namespace ckplan::cuda {

std::unique_ptr<Backend> MakeTestBackend() {
  constexpr int kSkipped = 77;  // The exit code that CTest counts as skipped.
  DeviceOptions options;
  options.workspace_limit = kTestWorkspace;
  auto device = OpenCudaDevice(options, OpenCudaLibraries);
  if (!device.ok()) {
    std::fprintf(stderr, "SKIPPED: no test of this program was run: %s\n",
                 device.error().message.c_str());
    std::exit(kSkipped);
  }
  return MakeBackend(std::move(device).value());
}

}  // namespace ckplan::cuda
