#include "lib/executor/cuda/gpu/cudnn_backend.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "lib/executor/cuda/cuda_check.h"
#include "lib/executor/cuda/gpu/shared_library.h"

namespace ckplan::cuda {

namespace {

// Statuses between these are failed allocations, of the host or of the GPU.
bool IsOutOfMemory(cudnnStatus_t status) {
  constexpr int kHostAllocationFailed = 4003;
  constexpr int kDeviceAllocationFailed = 4004;
  return static_cast<int>(status) == kHostAllocationFailed ||
         static_cast<int>(status) == kDeviceAllocationFailed;
}

}  // namespace

Result<CudnnApi> CudnnApi::Load(const std::vector<std::string>& folders) {
  CKPLAN_ASSIGN_OR_RETURN(const SharedLibrary library,
                          SharedLibrary::Open("cuDNN 9", {"libcudnn.so.9"}, folders));
  CudnnApi api;
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnCreate", api.create));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnDestroy", api.destroy));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnSetStream", api.set_stream));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnGetVersion", api.get_version));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnGetErrorString", api.get_error_string));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnGetLastErrorString", api.get_last_error_string));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnBackendCreateDescriptor", api.create_descriptor));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnBackendDestroyDescriptor", api.destroy_descriptor));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnBackendSetAttribute", api.set_attribute));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnBackendGetAttribute", api.get_attribute));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnBackendFinalize", api.finalize));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnBackendExecute", api.execute));
  return api;
}

std::string CudnnApi::VersionText() const {
  return fmt::format("{}.{}.{}", version() / 10000, version() / 100 % 100, version() % 100);
}

void CheckCudnn(const CudnnApi& api, cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  if (IsOutOfMemory(status)) FailOutOfMemory(call);
  FailCheck(__FILE__, __LINE__, call, api.get_error_string(status));
}

CudnnDescriptor::CudnnDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type)
    : api_(&api) {
  status_ = api.create_descriptor(type, &handle_);
  if (status_ == CUDNN_STATUS_SUCCESS) return;
  handle_ = nullptr;
  failure_ = Refusal(status_, "creating a descriptor").message;
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) api_->destroy_descriptor(handle_);
}

CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name,
                                      cudnnBackendAttributeType_t type, int64_t count,
                                      const void* values) {
  if (!failure_.empty()) return *this;
  status_ = api_->set_attribute(handle_, name, type, count, values);
  if (status_ != CUDNN_STATUS_SUCCESS) {
    failure_ = Refusal(status_, fmt::format("attribute {} of a descriptor", static_cast<int>(name)))
                   .message;
  }
  return *this;
}

Result<Done> CudnnDescriptor::Finalize() {
  if (!failure_.empty()) return MakeError(ErrorCode::kUnsupported, failure_);
  status_ = api_->finalize(handle_);
  if (status_ == CUDNN_STATUS_SUCCESS) return Done{};
  return Refusal(status_, "a descriptor");
}

Result<int64_t> CudnnDescriptor::Get(cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, int64_t count,
                                     void* values) const {
  int64_t found = 0;
  const cudnnStatus_t status =
      api_->get_attribute(handle_, name, type, count, &found, count == 0 ? nullptr : values);
  if (status == CUDNN_STATUS_SUCCESS) return found;
  return Refusal(status, fmt::format("reading attribute {}", static_cast<int>(name)));
}

Result<int64_t> CudnnDescriptor::GetInteger(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  CKPLAN_RETURN_IF_ERROR(Get(name, CUDNN_TYPE_INT64, 1, &value));
  return value;
}

Result<std::vector<int>> CudnnDescriptor::GetNotes(cudnnBackendAttributeName_t name) const {
  static_assert(sizeof(cudnnBackendNumericalNote_t) == sizeof(int));
  std::vector<int> notes(64);
  CKPLAN_ASSIGN_OR_RETURN(const int64_t count,
                          Get(name, CUDNN_TYPE_NUMERICAL_NOTE, 64, notes.data()));
  notes.resize(static_cast<size_t>(count));
  return notes;
}

Result<std::vector<CudnnDescriptor>> CudnnDescriptor::GetParts(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t kind) const {
  CKPLAN_ASSIGN_OR_RETURN(int64_t count, Get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
  std::vector<CudnnDescriptor> parts;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) {
    parts.emplace_back(*api_, kind);
    if (!parts.back().failure_.empty()) {
      return MakeError(ErrorCode::kUnsupported, parts.back().failure_);
    }
    handles.push_back(parts.back().handle());
  }
  CKPLAN_ASSIGN_OR_RETURN(count, Get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, handles.data()));
  while (static_cast<int64_t>(parts.size()) > count) parts.pop_back();
  return parts;
}

Error CudnnDescriptor::Refusal(cudnnStatus_t status, std::string_view call) const {
  if (IsOutOfMemory(status)) FailOutOfMemory(call);
  std::array<char, 512> reason{};
  api_->get_last_error_string(reason.data(), reason.size());
  reason.back() = '\0';
  const std::string_view why = reason.data();
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("cuDNN refuses {}: {}{}{}", call, api_->get_error_string(status),
                               why.empty() ? "" : ": ", why));
}

}  // namespace ckplan::cuda
