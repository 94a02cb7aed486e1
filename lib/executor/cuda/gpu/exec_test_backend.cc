#include "lib/executor/core/test_backend.h"
#include "lib/executor/cuda/test_backend.h"

namespace ckplan {

std::unique_ptr<Backend> MakeTestBackend() { return cuda::MakeTestBackend(); }

}  // namespace ckplan
