// Execution plans of cuDNN for single convolutions: which engine computes a pass, and in how much
// workspace.
//
// cuDNN lists the configurations of engines that it recommends, fastest first by its own estimate.
// Each is tried in this order, until one
//
//   - gives the same bits each time (no note NONDETERMINISTIC), computes sums in float32 (no
//     REDUCED_PRECISION_REDUCTION), and, if TF32 is not allowed, products of float32 as well
//     (neither TENSOR_CORE nor DOWN_CONVERT_INPUTS),
//   - is accepted, which means that cuDNN makes an execution plan of it, and
//   - takes no more workspace than the limit.
//
// Nothing is run. The device may be a GPU, by way of a handle, or only be described.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/cuda/device.h"
#include "lib/cuda/gpu/cudnn_backend.h"
#include "lib/cuda/libraries.h"

namespace ckplan::cuda {

// The device that a plan is for: a GPU's handle, or a descriptor of the properties of a device that
// is not there. One of them is null.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

// Returns the descriptor of a device from its properties as cuDNN writes them in JSON. It serves
// plans, but runs nothing. kUnsupported: the library is older than 9.8, or refuses the properties.
Result<CudnnDescriptor> DescribeDevice(const CudnnApi& api, const std::string& properties_json);

struct CudnnPlan {
  CudnnDescriptor configuration;
  CudnnDescriptor plan;
  EngineChoice choice;
};

// The ids by which a variant pack names the tensors of a plan.
inline constexpr int64_t kIdOfX = 1, kIdOfW = 2, kIdOfY = 3;

// kUnsupported: no engine passes; the message says why, and what limit would do.
Result<std::shared_ptr<const CudnnPlan>> MakeCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const ConvolutionShape& shape, ConvPass pass,
                                                       const DeviceOptions& options);

}  // namespace ckplan::cuda
