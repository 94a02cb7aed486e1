// How engines of cuDNN are chosen: execution plans for graphs of operations, which say what engine
// computes a graph, and in how much workspace.
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
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/gpu/cudnn_backend.h"

namespace ckplan::cuda {

// Tensors begin at multiples of so many bytes; buffers of the arena, and workspaces, at multiples
// of 256.
inline constexpr int64_t kTensorAlignment = 16;

// The device that a plan is for: a GPU's handle, or a descriptor of the properties of a device that
// is not there. One of them is null.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

// Returns the descriptor of a device from its properties as cuDNN writes them in JSON. It serves
// plans, but runs nothing. kUnsupported: the library is older than 9.8, or refuses the properties.
Result<CudnnDescriptor> DescribeDevice(const CudnnApi& api, const std::string& properties_json);

// Returns the graph of the operations, which must outlive it.
Result<CudnnDescriptor> MakeOperationGraph(const CudnnApi& api, const CudnnTarget& target,
                                           const std::vector<CudnnDescriptor>& operations);

struct CudnnPlan {
  CudnnDescriptor configuration;
  CudnnDescriptor plan;
  EngineChoice choice;
};

// Which engines may be taken.
struct EngineRules {
  const char* what = "";  // What is computed, for messages.
  bool may_use_tensor_cores = false;
  std::optional<int64_t> workspace_limit;  // In bytes; the default is 256 MiB.
  // The default is exceeded if all engines need more, or all that use tensor cores: those are
  // several times as fast as the others.
  bool may_exceed_default = false;
  // An engine with less workspace than this is not deterministic, whatever its notes say.
  int64_t least_workspace = 0;
};

// kUnsupported: no engine passes; the message says why, and what limit would do.
Result<std::shared_ptr<const CudnnPlan>> FindCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const CudnnDescriptor& graph,
                                                       const EngineRules& rules);

// Starts the work of a plan in the handle's stream, with the tensors of the given ids.
void ExecuteCudnnPlan(const CudnnApi& api, cudnnHandle_t handle, const CudnnPlan& plan,
                      const std::vector<int64_t>& ids, const std::vector<void*>& tensors,
                      void* workspace);

}  // namespace ckplan::cuda
