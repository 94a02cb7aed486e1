// Attention with cuDNN: execution plans for the graphs in cudnn_attention.cc, made once per shape
// and pass, and run in a stream.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/gpu/cudnn_backend.h"
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

class CudnnAttentions {
 public:
  // The interface and the target must outlive the object.
  CudnnAttentions(const CudnnApi& api, const CudnnTarget& target, const DeviceOptions& options)
      : api_(api), target_(target), options_(options) {}

  // See Libraries::PrepareAttention. The returned object must not outlive this one.
  Result<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape,
                                                    AttentionPass pass);

 private:
  const CudnnApi& api_;
  CudnnTarget target_;
  DeviceOptions options_;
  std::map<std::pair<LibraryAttentionShape, AttentionPass>,
           Result<std::shared_ptr<const CudnnPlan>>>
      plans_;
};

}  // namespace ckplan::cuda
