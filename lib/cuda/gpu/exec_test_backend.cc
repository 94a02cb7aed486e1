#include "lib/cuda/test_backend.h"
#include "lib/exec/test_backend.h"

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() { return cuda::MakeTestBackend(); }

}  // namespace ckplan
