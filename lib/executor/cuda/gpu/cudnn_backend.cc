#include "lib/executor/cuda/gpu/cudnn_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/cuda_check.h"
#include "lib/executor/cuda/gpu/shared_library.h"

namespace ckplan::cuda {

namespace {

// Statuses in this range are failed allocations, on the host or the GPU.
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
                   fmt::format("cuDNN rejects {}: {}{}{}", call, api_->get_error_string(status),
                               why.empty() ? "" : ": ", why));
}

namespace {

constexpr int64_t kUsualLimit = int64_t{256} << 20;
constexpr int64_t kFirstVersionWithDevices = 90800;

Result<std::vector<CudnnDescriptor>> Recommended(const CudnnApi& api, const CudnnTarget& target,
                                                 const CudnnDescriptor& graph,
                                                 cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.properties != nullptr) heuristics.Set(kHeuristicsDevice, *target.properties);
  CKPLAN_RETURN_IF_ERROR(heuristics.Finalize());
  return heuristics.GetParts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

class PlanSearch {
 public:
  PlanSearch(const CudnnApi& api, const CudnnTarget& target, const EngineRules& rules)
      : api_(api), target_(target), rules_(rules), limit_(rules.workspace_limit) {
    if (!limit_ && !rules.can_exceed_default) limit_ = kUsualLimit;
  }

  // Returns whether a plan within the limit was found.
  bool Try(Result<std::vector<CudnnDescriptor>> configurations) {
    if (!configurations.ok()) {
      Note(configurations.error());
      return false;
    }
    for (CudnnDescriptor& configuration : *configurations) {
      ++tried_;
      std::optional<CudnnPlan> plan = Accept(std::move(configuration));
      if (!plan) continue;
      const bool is_slower =
          best_ && best_->choice.uses_tensor_cores && !plan->choice.uses_tensor_cores;
      if (is_slower && !limit_) continue;
      const bool fits = plan->choice.workspace <= limit_.value_or(kUsualLimit);
      if (fits || !best_ || plan->choice.workspace < best_->choice.workspace) {
        best_ = std::move(plan);
      }
      if (fits) return is_found_ = true;
    }
    return false;
  }

  // Returns the plan found. Without an explicit limit, this may be the plan with the smallest
  // workspace.
  Result<std::shared_ptr<const CudnnPlan>> Finish() {
    const auto refuse = [this](const std::string& why) {
      return MakeError(ErrorCode::kUnsupported, fmt::format("cuDNN for {}: {}", rules_.what, why));
    };
    if (!best_) {
      return refuse(fmt::format("it has no deterministic engine for this shape{}{}",
                                refusal_.empty() ? "" : "; ", refusal_));
    }
    if (limit_ && !is_found_) {
      return refuse(
          fmt::format("it needs at least {0} bytes of workspace, more than the limit; raise the "
                      "workspace limit to {0}",
                      best_->choice.workspace));
    }
    return std::shared_ptr<const CudnnPlan>(std::make_shared<const CudnnPlan>(std::move(*best_)));
  }

 private:
  std::optional<CudnnPlan> Accept(CudnnDescriptor configuration) {
    Result<CudnnPlan> plan = Build(std::move(configuration));
    if (plan.ok()) return std::move(plan).value();
    Note(plan.error());
    return std::nullopt;
  }
  void Note(const Error& error) {
    if (refusal_.empty()) refusal_ = error.message;
  }

  Result<CudnnPlan> Build(CudnnDescriptor configuration) {
    EngineChoice choice;
    choice.rank = tried_;
    CKPLAN_ASSIGN_OR_RETURN(
        const std::vector<CudnnDescriptor> engines,
        configuration.GetParts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
    if (engines.size() != 1)
      return MakeError(ErrorCode::kUnsupported, "it does not name an engine");
    CKPLAN_ASSIGN_OR_RETURN(choice.engine, engines[0].GetInteger(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    CKPLAN_ASSIGN_OR_RETURN(const auto notes,
                            engines[0].GetNotes(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
    const auto has = [&](cudnnBackendNumericalNote_t note) {
      return std::find(notes.begin(), notes.end(), static_cast<int>(note)) != notes.end();
    };
    choice.uses_tensor_cores = has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return RejectEngine("is not deterministic");
    if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) {
      return RejectEngine("does not sum in float32");
    }
    const bool rounds = choice.uses_tensor_cores || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
    if (rounds && !rules_.allows_tensor_cores) return RejectEngine("computes in TF32");
    CudnnDescriptor plan(api_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (target_.handle != nullptr) {
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target_.handle);
    }
    if (target_.properties != nullptr) plan.Set(kPlanDevice, *target_.properties);
    CKPLAN_RETURN_IF_ERROR(plan.Finalize());
    CKPLAN_ASSIGN_OR_RETURN(choice.workspace,
                            plan.GetInteger(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    if (choice.workspace < rules_.min_workspace) {
      return RejectEngine("sums in an order that is not always the same");
    }
    return CudnnPlan{std::move(configuration), std::move(plan), choice};
  }

  static Error RejectEngine(std::string_view why) {
    return MakeError(ErrorCode::kUnsupported, fmt::format("its first engine {}", why));
  }

  const CudnnApi& api_;
  const CudnnTarget& target_;
  const EngineRules& rules_;
  std::optional<int64_t> limit_;
  int64_t tried_ = 0;
  bool is_found_ = false;
  std::optional<CudnnPlan> best_;
  std::string refusal_;  // Why the first configuration was rejected.
};

}  // namespace

Result<CudnnDescriptor> DescribeDevice(const CudnnApi& api, const std::string& properties_json) {
  if (api.version() < kFirstVersionWithDevices) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("cuDNN {} only knows the GPU that it runs on; install 9.8 or "
                                 "newer to describe other GPUs",
                                 api.VersionText()));
  }
  CudnnDescriptor device(api, kDevicePropertiesDescriptor);
  device.Set(kDevicePropertiesJson, kCharType, static_cast<int64_t>(properties_json.size()),
             properties_json.data());
  CKPLAN_RETURN_IF_ERROR(device.Finalize());
  return device;
}

Result<CudnnDescriptor> MakeOperationGraph(const CudnnApi& api, const CudnnTarget& target,
                                           const std::vector<CudnnDescriptor>& operations) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& operation : operations) handles.push_back(operation.handle());
  CudnnDescriptor graph(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(handles.size()), handles.data());
  if (target.handle != nullptr) {
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  CKPLAN_RETURN_IF_ERROR(graph.Finalize());
  return graph;
}

Result<std::shared_ptr<const CudnnPlan>> FindCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const CudnnDescriptor& graph,
                                                       const EngineRules& rules) {
  PlanSearch search(api, target, rules);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (search.Try(Recommended(api, target, graph, mode))) break;
  }
  return search.Finish();
}

void ExecuteCudnnPlan(const CudnnApi& api, cudnnHandle_t handle, const CudnnPlan& plan,
                      const std::vector<int64_t>& ids, const std::vector<void*>& tensors,
                      void* workspace) {
  CKPLAN_CHECK(handle != nullptr, "a GPU that is only described cannot execute anything");
  const auto count = static_cast<int64_t>(ids.size());
  CudnnDescriptor pack(api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
      .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, tensors.data())
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  const Result<Done> packed = pack.Finalize();
  CKPLAN_CHECK(packed.ok(), packed.error().message);
  CheckCudnn(api, api.execute(handle, plan.plan.handle(), pack.handle()), "cudnnBackendExecute");
}

}  // namespace ckplan::cuda
