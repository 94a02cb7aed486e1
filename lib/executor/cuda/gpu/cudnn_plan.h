// Execution plans of cuDNN for single convolutions: which engine computes a pass, and in how much
// workspace. cudnn_engines.h says how it is chosen.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/gpu/cudnn_backend.h"
#include "lib/executor/cuda/gpu/cudnn_engines.h"
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

// The ids by which a variant pack names the tensors of a plan.
inline constexpr int64_t kIdOfX = 1, kIdOfW = 2, kIdOfY = 3;

// kUnsupported: see FindCudnnPlan.
Result<std::shared_ptr<const CudnnPlan>> MakeCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const ConvolutionShape& shape, ConvPass pass,
                                                       const DeviceOptions& options);

}  // namespace ckplan::cuda
