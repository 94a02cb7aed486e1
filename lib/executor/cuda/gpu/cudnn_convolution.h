// Convolutions with cuDNN: execution plans, made once per shape and pass, and run in a stream.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/gpu/cudnn_backend.h"
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

// cuDNN execution plans for single convolutions: the engine of a pass, and its workspace.
// cudnn_backend.h says how the engine is chosen.

// The tensors' ids in a variant pack.
inline constexpr int64_t kIdOfX = 1, kIdOfW = 2, kIdOfY = 3;

// kUnsupported: see FindCudnnPlan.
Result<std::shared_ptr<const CudnnPlan>> MakeCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const ConvolutionShape& shape, ConvPass pass,
                                                       const DeviceOptions& options);

// The library, started for a GPU or a description of one, and the convolutions prepared with it.
class CudnnConvolutions {
 public:
  // Fails with kUnsupported if the library cannot start, for example because of too little memory.
  static Result<std::unique_ptr<CudnnConvolutions>> Create(const CudnnApi& api,
                                                           const DeviceOptions& options,
                                                           cudaStream_t stream);
  // Prepares convolutions for a GPU that this machine doesn't have, from its properties in JSON.
  // They cannot run. kUnsupported: see DescribeDevice.
  static Result<std::unique_ptr<CudnnConvolutions>> Describe(const CudnnApi& api,
                                                             const DeviceOptions& options,
                                                             const std::string& properties_json);
  ~CudnnConvolutions();
  CudnnConvolutions(const CudnnConvolutions&) = delete;
  CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;

  const CudnnApi& api() const { return api_; }
  // The device that convolutions are prepared for. It must not outlive this object.
  CudnnTarget target() const { return {handle_, properties_ ? &*properties_ : nullptr}; }
  // See Libraries::PrepareConvolution. The returned object must not outlive this one.
  Result<std::unique_ptr<Convolution>> Prepare(const ConvolutionShape& shape, ConvPass pass);

 private:
  CudnnConvolutions(const CudnnApi& api, const DeviceOptions& options, cudnnHandle_t handle);

  CudnnApi api_;
  DeviceOptions options_;
  cudnnHandle_t handle_;                       // Null if the device is only described.
  std::optional<CudnnDescriptor> properties_;  // Set if the device is only described.
  std::map<std::pair<ConvolutionShape, ConvPass>, std::shared_ptr<const CudnnPlan>> plans_;
};

}  // namespace ckplan::cuda
