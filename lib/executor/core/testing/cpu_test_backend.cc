#include "lib/executor/core/testing/test_backend.h"
#include "lib/executor/cpu/cpu_backend.h"

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() { return cpu::MakeCpuBackend(1); }

}  // namespace ckplan
