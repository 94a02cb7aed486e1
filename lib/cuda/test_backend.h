// The backend that the tests of this folder use: the host's in one program, a GPU's in another.
#pragma once

#include <memory>

#include "lib/backend/backend.h"

namespace ckplan::cuda {

std::unique_ptr<Backend> MakeTestBackend();

}  // namespace ckplan::cuda
