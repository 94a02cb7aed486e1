#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lib/executor/core/testing/test_backend.h"
#include "lib/executor/cuda/cuda_backend.h"
#include "lib/executor/cuda/testing/test_backend.h"
#ifdef CKPLAN_HAS_CPU
#include "lib/executor/cpu/cpu_backend.h"
#endif

namespace ckplan::cuda {

#ifdef CKPLAN_HAS_CPU
std::unique_ptr<Backend> MakeHost() { return cpu::MakeCpuBackend(2); }
#else
std::unique_ptr<Backend> MakeHost() { return nullptr; }
#endif

std::unique_ptr<Backend> MakeTestBackend(DeviceOptions options) {
  constexpr int kSkipped = 77;  // The exit code that CTest counts as skipped.
  options.workspace_limit = kTestWorkspace;
  auto backend = OpenBackend(options, MakeHost());
  if (!backend.ok()) {
    std::fprintf(stderr, "SKIPPED: no test of this program was run: %s\n",
                 backend.error().message.c_str());
    std::exit(kSkipped);
  }
  return std::move(backend).value();
}

}  // namespace ckplan::cuda

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() { return cuda::MakeTestBackend(); }

}  // namespace ckplan
