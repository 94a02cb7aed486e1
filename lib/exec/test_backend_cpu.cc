#include "lib/cpu/cpu_backend.h"
#include "lib/exec/test_backend.h"

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() { return cpu::MakeCpuBackend(1); }

}  // namespace ckplan
