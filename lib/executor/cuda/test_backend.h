// The backend that the tests of this folder use: the host's in one program, a GPU's in another.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// The limit of one call's workspace, in bytes. Tests of operators fill the whole workspace and look
// at it afterwards, which takes minutes with the workspace that is usual for a GPU.
inline constexpr int64_t kTestWorkspace = int64_t{64} << 10;

// Returns the backend that computes what the GPU has no kernels for, or null where this program has
// none: in portable builds.
std::unique_ptr<Backend> MakeHost();

// The workspace's limit is kTestWorkspace, whatever the options say.
std::unique_ptr<Backend> MakeTestBackend(DeviceOptions options);
inline std::unique_ptr<Backend> MakeTestBackend() { return MakeTestBackend(DeviceOptions()); }

}  // namespace ckplan::cuda
