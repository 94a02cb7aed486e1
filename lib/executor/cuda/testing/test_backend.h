// The backend for this folder's tests: the host's in one program, a GPU's in another.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// The workspace limit of one call, in bytes. Operator tests fill and inspect the whole workspace,
// which would take minutes with a GPU's usual workspace.
inline constexpr int64_t kTestWorkspace = int64_t{64} << 10;

// Returns the backend that computes what the GPU has no kernels for, or null where this program has
// none: in portable builds.
std::unique_ptr<Backend> MakeHost();

// The workspace's limit is kTestWorkspace, whatever the options say.
std::unique_ptr<Backend> MakeTestBackend(DeviceOptions options);
inline std::unique_ptr<Backend> MakeTestBackend() { return MakeTestBackend(DeviceOptions()); }

}  // namespace ckplan::cuda
