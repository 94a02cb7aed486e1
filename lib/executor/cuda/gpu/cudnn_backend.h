// cuDNN's backend interface: its functions, loaded at run time, and descriptors.
//
// A descriptor is an object whose attributes are set one by one. Then it is finalized and can be
// another descriptor's attribute. NVIDIA's cudnn_graph documentation describes them all.
// docs/dependencies.md says why we don't use NVIDIA's header-only library for this interface.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"

namespace ckplan::cuda {

// The cuDNN functions in use.
struct CudnnApi {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) get_error_string = nullptr;
  decltype(&cudnnGetLastErrorString) get_last_error_string = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  // Fails with kUnsupported if cuDNN 9 is missing.
  static Result<CudnnApi> Load(const std::vector<std::string>& folders);

  int64_t version() const { return static_cast<int64_t>(get_version()); }  // 91900 for 9.19.0.
  // "9.19.0"
  std::string VersionText() const;
};

// Ends the program if a call failed that no caller could handle; see cuda_check.h.
void CheckCudnn(const CudnnApi& api, cudnnStatus_t status, const char* call);

// Values that headers older than cuDNN 9.8 lack.
inline constexpr auto kDevicePropertiesDescriptor = static_cast<cudnnBackendDescriptorType_t>(38);
inline constexpr auto kHeuristicsDevice = static_cast<cudnnBackendAttributeName_t>(204);
inline constexpr auto kPlanDevice = static_cast<cudnnBackendAttributeName_t>(407);
inline constexpr auto kDevicePropertiesJson = static_cast<cudnnBackendAttributeName_t>(2702);
inline constexpr auto kCharType = static_cast<cudnnBackendAttributeType_t>(24);

// A descriptor. The first failing call determines the result of Finalize; later calls do nothing.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : api_(other.api_),
        handle_(std::exchange(other.handle_, nullptr)),
        status_(other.status_),
        failure_(std::move(other.failure_)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    std::swap(status_, other.status_);
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t handle() const { return handle_; }

  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t count, const void* values);
  template <typename Value>
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const Value& value) {
    return Set(name, type, 1, &value);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, int64_t value) {
    return Set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return Set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& part) {
    const cudnnBackendDescriptor_t handle = part.handle();
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  }
  // kUnsupported: cuDNN rejects the attributes; the message has its reason.
  Result<Done> Finalize();

  // Reads an attribute of a finalized descriptor. kUnsupported: cuDNN doesn't provide it.
  Result<int64_t> GetInteger(cudnnBackendAttributeName_t name) const;
  // Notes are numbers, because a cuDNN that is newer than its header has more of them.
  Result<std::vector<int>> GetNotes(cudnnBackendAttributeName_t name) const;
  // Returns the attribute's values, descriptors of the given kind.
  Result<std::vector<CudnnDescriptor>> GetParts(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t kind) const;

 private:
  Result<int64_t> Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      int64_t count, void* values) const;
  Error Refusal(cudnnStatus_t status, std::string_view call) const;

  const CudnnApi* api_;
  cudnnBackendDescriptor_t handle_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  std::string failure_;  // The first failing call's message.
};

// Choosing cuDNN engines: execution plans for operation graphs, which determine the engine that
// computes a graph, and its workspace.
//
// cuDNN lists its recommended engine configurations, fastest first by its own estimate. They are
// tried in this order until one
//
//   - gives the same bits each time (no note NONDETERMINISTIC), computes sums in float32 (no
//     REDUCED_PRECISION_REDUCTION), and, if TF32 is not allowed, products of float32 as well
//     (neither TENSOR_CORE nor DOWN_CONVERT_INPUTS),
//   - is accepted: cuDNN makes an execution plan for it, and
//   - takes no more workspace than the limit.
//
// Nothing runs. The device is a GPU with a handle, or only a description.

// The alignment of tensors in bytes. Arena buffers and workspaces are aligned to 256.
inline constexpr int64_t kTensorAlignment = 16;

// The device of a plan: a GPU's handle, or a descriptor of the properties of a device that this
// machine doesn't have. The other one is null.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

// Returns a device's descriptor, from its properties in cuDNN's JSON format. It is enough for
// plans, but cannot run them. kUnsupported: the library is older than 9.8, or rejects the
// properties.
Result<CudnnDescriptor> DescribeDevice(const CudnnApi& api, const std::string& properties_json);

// Returns the graph of the operations, which must outlive it.
Result<CudnnDescriptor> MakeOperationGraph(const CudnnApi& api, const CudnnTarget& target,
                                           const std::vector<CudnnDescriptor>& operations);

struct CudnnPlan {
  CudnnDescriptor configuration;
  CudnnDescriptor plan;
  EngineChoice choice;
};

// Which engines are acceptable.
struct EngineRules {
  const char* what = "";  // What is computed, for messages.
  bool allows_tensor_cores = false;
  std::optional<int64_t> workspace_limit;  // In bytes; the default is 256 MiB.
  // Exceeds the default if all engines need more, or all that use tensor cores, which are several
  // times as fast as the others.
  bool can_exceed_default = false;
  // An engine with less workspace than this is nondeterministic, whatever its notes say.
  int64_t min_workspace = 0;
};

// kUnsupported: no engine is acceptable; the message says why, and which limit would be enough.
Result<std::shared_ptr<const CudnnPlan>> FindCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const CudnnDescriptor& graph,
                                                       const EngineRules& rules);

// Runs a plan in the handle's stream, with the tensors of the given ids.
void ExecuteCudnnPlan(const CudnnApi& api, cudnnHandle_t handle, const CudnnPlan& plan,
                      const std::vector<int64_t>& ids, const std::vector<void*>& tensors,
                      void* workspace);

}  // namespace ckplan::cuda
