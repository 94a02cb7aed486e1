// The backend that the tests of this folder use: the host's in one program, a GPU's in another.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/backend/backend.h"

namespace ckplan::cuda {

// The limit of one call's workspace, in bytes. Tests of operators fill the whole workspace and look
// at it afterwards, which takes minutes with the workspace that is usual for a GPU.
inline constexpr int64_t kTestWorkspace = int64_t{64} << 10;

std::unique_ptr<Backend> MakeTestBackend();

}  // namespace ckplan::cuda
