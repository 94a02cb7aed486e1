// An emulated cuDNN, for the emulated CUDA runtime (emulated_runtime.h). The program loads it like
// cuDNN. Convolutions and attention graphs (emulated_graph.cc) are simple loops that run as stream
// work. A call that breaks cuDNN's rules ends the program: a descriptor that is dead, incomplete or
// doesn't match the others (emulated_descriptors.h), an engine that was not recommended, or tensors
// and workspaces outside allocations. A nondeterministic engine flips a bit of its result each
// time.
#include "lib/executor/cuda/testing/emulated/emulated_cudnn.h"

#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/testing/emulated/emulated_descriptors.h"
#include "lib/executor/cuda/testing/emulated/emulated_operations.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {

namespace {

constexpr size_t kCudnnVersion = 91900;
constexpr int kUsedByCudnn = 0x5B;  // What a convolution leaves in its workspace.

struct EmulatedCudnn {
  cudaStream_t stream = nullptr;
};

EmulatedObjects<EmulatedCudnn>& Handles() {
  static EmulatedObjects<EmulatedCudnn> handles;
  return handles;
}

// As in cuDNN, the first engine is nondeterministic; the second cannot make plans.
std::vector<EmulatedEngine>& Engines() {
  static std::vector<EmulatedEngine> engines = {
      {.number = 11, .workspace_bytes = 1024, .is_deterministic = false},
      {.number = 12, .workspace_bytes = 0, .makes_plans = false},
      {.number = 13, .workspace_bytes = 2048, .has_tensor_cores = true},
      {.number = 14, .workspace_bytes = 1024},
      {.number = 15, .workspace_bytes = 0, .is_fallback = true}};
  return engines;
}

// Returns the engine that an engine descriptor names.
const EmulatedEngine& EngineOf(const EmulatedDescriptor& described) {
  const auto number = described.Get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const auto found =
      std::find_if(Engines().begin(), Engines().end(),
                   [&](const EmulatedEngine& engine) { return engine.number == number; });
  CKPLAN_CHECK(found != Engines().end(), "an engine comes from the recommendations");
  return *found;
}

const EmulatedDescriptor& ConfiguredEngineOf(const EmulatedDescriptor& plan) {
  return plan.Part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).Part(CUDNN_ATTR_ENGINECFG_ENGINE);
}

std::string& LastError() {
  static std::string error;
  return error;
}

cudnnStatus_t Reject(cudnnStatus_t status, std::string why) {
  LastError() = std::move(why);
  return status;
}

// ---- Reading descriptors
// -------------------------------------------------------------------------

std::vector<int64_t> DimsOf(const EmulatedDescriptor& tensor) {
  return tensor.Integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
}

// Returns the bytes from a tensor's first element to its last.
int64_t BytesOf(const EmulatedDescriptor& tensor) {
  const std::vector<int64_t> dims = DimsOf(tensor);
  const std::vector<int64_t> strides = tensor.Integers(CUDNN_ATTR_TENSOR_STRIDES);
  int64_t elements = 1;
  for (size_t i = 0; i < dims.size(); ++i) elements += (dims[i] - 1) * strides[i];
  const auto type = tensor.Get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  return elements * (type == CUDNN_DATA_BFLOAT16 ? 2 : 4);
}

void CheckTensor(const EmulatedDescriptor& tensor) {
  const std::vector<int64_t> dims = DimsOf(tensor);
  const std::vector<int64_t> strides = tensor.Integers(CUDNN_ATTR_TENSOR_STRIDES);
  CKPLAN_CHECK(dims.size() == 4 || dims.size() == 5, "a tensor has four or five axes");
  CKPLAN_CHECK(strides.size() == dims.size(), "a tensor has a stride for each dimension");
  CKPLAN_CHECK(std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim > 0; }),
               "a cuDNN tensor has elements");
}

// Checks for the keys that cuDNN requires.
cudnnStatus_t ValidateProperties(const EmulatedDescriptor& device) {
  const std::string text = device.Text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  for (const char* key : {"maxGridSize",
                          "maxBlockSize",
                          "regsPerBlock",
                          "multiProcessorCount",
                          "warpSize",
                          "maxSharedMemoryPerBlock",
                          "maxSharedMemoryPerBlockOptin",
                          "reservedSharedMemoryPerBlock",
                          "maxRegistersPerSM",
                          "maxCtasPerSM",
                          "maxThreadsPerBlock",
                          "maxThreadsPerSM",
                          "pciDeviceId",
                          "isTccDriver",
                          "supportCoopLaunch",
                          "smClockRateKHz",
                          "memClockRateKHz",
                          "l2CacheSize",
                          "deviceName",
                          "deviceVer",
                          "driverVer",
                          "totalGlobalMem",
                          "cudaDeviceId"}) {
    if (text.find("\"" + std::string(key) + "\":") == std::string::npos) {
      return Reject(CUDNN_STATUS_BAD_PARAM, "missing device property: " + std::string(key));
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeStatus(const EmulatedDescriptor& descriptor) {
  switch (descriptor.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      CheckTensor(descriptor);
      break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      CheckEmulatedConvolution(descriptor);
      break;
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return ValidateProperties(descriptor);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      CKPLAN_CHECK(descriptor.Has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) !=
                       descriptor.Has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP),
                   "a plan belongs to one device");
      if (!EngineOf(ConfiguredEngineOf(descriptor)).makes_plans) {
        return Reject(CUDNN_STATUS_NOT_SUPPORTED, "the engine cannot make a plan");
      }
      break;
    default:
      if (IsEmulatedConvolution(descriptor.kind)) CheckEmulatedConvolutionOperation(descriptor);
      if (IsEmulatedGraphOperation(descriptor.kind)) CheckEmulatedGraphOperation(descriptor);
      break;
  }
  return CUDNN_STATUS_SUCCESS;
}

// ---- Engines ------------------------------------------------------------------------------------

void ReadRecommendations(const EmulatedDescriptor& heuristics, int64_t requested, int64_t* count,
                         void* values) {
  const bool has_fallbacks = heuristics.Get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) ==
                             CUDNN_HEUR_MODE_FALLBACK;
  auto* const handles = static_cast<cudnnBackendDescriptor_t*>(values);
  *count = 0;
  for (const EmulatedEngine& engine : Engines()) {
    if (engine.is_fallback != has_fallbacks) continue;
    if (*count < requested) {
      auto described = std::make_shared<EmulatedDescriptor>();
      described->kind = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
      described->is_finalized = true;
      described->SetInteger(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine.number);
      described->SetPart(CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                         heuristics.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).parts[0]);
      const auto configuration = FindEmulatedDescriptor(handles[*count]);
      CKPLAN_CHECK(configuration->kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                   "engine configurations are read into configuration descriptors");
      configuration->SetPart(CUDNN_ATTR_ENGINECFG_ENGINE, std::move(described));
      configuration->is_finalized = true;
    }
    ++*count;
  }
  if (requested > 0) *count = std::min(*count, requested);
}

void ReadEngine(const EmulatedDescriptor& configuration, int64_t requested, int64_t* count,
                void* values) {
  *count = 1;
  if (requested == 0) return;
  const auto engine = FindEmulatedDescriptor(*static_cast<cudnnBackendDescriptor_t*>(values));
  CKPLAN_CHECK(engine->kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR,
               "an engine is read into an engine descriptor");
  *engine = configuration.Part(CUDNN_ATTR_ENGINECFG_ENGINE);
}

void ReadNotes(const EmulatedEngine& engine, int64_t requested, int64_t* count, void* values) {
  std::vector<cudnnBackendNumericalNote_t> notes;
  if (engine.has_tensor_cores) notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  if (!engine.sums_in_float32) notes.push_back(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  if (!engine.is_deterministic &&
      !IsPlanted("an engine of a convolution hides that it is not deterministic")) {
    notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  }
  *count = std::min(requested, static_cast<int64_t>(notes.size()));
  std::copy_n(notes.begin(), *count, static_cast<cudnnBackendNumericalNote_t*>(values));
}

const EmulatedDescriptor& GraphOf(const EmulatedDescriptor& plan) {
  return ConfiguredEngineOf(plan).Part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}
const EmulatedDescriptor& FirstOperationOf(const EmulatedDescriptor& plan) {
  return GraphOf(plan).Part(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

int64_t WorkspaceOf(const EmulatedDescriptor& plan) {
  const EmulatedEngine& engine = EngineOf(ConfiguredEngineOf(plan));
  return engine.workspace_bytes +
         (engine.keeps_score_gradients ? KeptBytesOfEmulatedGraph(GraphOf(plan)) : 0);
}

cudnnStatus_t ReadAttribute(const EmulatedDescriptor& descriptor, EmulatedName name,
                            int64_t requested, int64_t* count, void* values) {
  CKPLAN_CHECK(descriptor.is_finalized, "a descriptor is finalized before it is read");
  int64_t integer = 0;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      ReadRecommendations(descriptor, requested, count, values);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      ReadEngine(descriptor, requested, count, values);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      ReadNotes(EngineOf(descriptor), requested, count, values);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      integer = descriptor.Get<int64_t>(name);
      break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      integer = WorkspaceOf(descriptor);
      break;
    default:
      CKPLAN_CHECK(false, "the attribute is one that the emulated cuDNN provides");
  }
  *count = 1;
  std::memcpy(values, &integer, sizeof(integer));
  return CUDNN_STATUS_SUCCESS;
}

// ---- Execution ----------------------------------------------------------------------------------

void* PointerOf(const EmulatedDescriptor& pack, const EmulatedDescriptor& tensor) {
  const auto id = tensor.Get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  const std::vector<int64_t> ids = pack.Integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  CKPLAN_CHECK(std::count(ids.begin(), ids.end(), id) == 1, "a tensor is bound once");
  auto place = static_cast<int64_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
  if (IsPlanted("a convolution reads another tensor")) {
    place = (place + 1) % static_cast<int64_t>(ids.size());
  }
  void* const data = pack.Get<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, place);
  if (tensor.Has(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) return data;
  const auto alignment =
      static_cast<uintptr_t>(tensor.Get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
  CKPLAN_CHECK(reinterpret_cast<uintptr_t>(data) % alignment == 0, "a tensor is aligned");
  CheckEmulatedRange(data, BytesOf(tensor));
  return data;
}

void CheckWorkspace(const EmulatedDescriptor& pack, int64_t needed, const std::string& of) {
  if (needed == 0) return;
  auto* const data = pack.Get<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  CKPLAN_CHECK(reinterpret_cast<uintptr_t>(data) % 256 == 0, "a workspace is aligned to 256 bytes");
  const EmulatedRange range = FindEmulatedRange(data);
  const int64_t given = IsPlanted("the workspace of " + of + " is too small")
                            ? needed - 1
                            : range.bytes - (data - static_cast<const char*>(range.begin));
  CKPLAN_CHECK(range.begin != nullptr && given >= needed,
               "a call gets the workspace that it requires");
}

cudnnStatus_t Execute(cudnnHandle_t handle, const EmulatedDescriptor& plan,
                      const EmulatedDescriptor& pack) {
  CKPLAN_CHECK(plan.is_finalized && pack.is_finalized,
               "plans and variant packs are finalized before they run");
  CKPLAN_CHECK(plan.Has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE),
               "a plan has a handle of the GPU that runs it");
  const int64_t bytes = WorkspaceOf(plan);
  auto* const workspace = pack.Get<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const EmulatedDescriptor& first = FirstOperationOf(plan);
  const bool is_deterministic = EngineOf(ConfiguredEngineOf(plan)).is_deterministic;
  const bool is_convolution = IsEmulatedConvolution(first.kind);
  // Tests give convolutions overlapping buffers, to check that ckexec detects them.
  const auto pointer_of = [&](const EmulatedDescriptor& tensor) {
    void* const data = PointerOf(pack, tensor);
    CKPLAN_CHECK(is_convolution || data < workspace || data >= workspace + bytes,
                 "attention tensors don't overlap their workspace");
    return data;
  };
  const std::function<void()> work =
      is_convolution ? BindEmulatedConvolution(first, pointer_of, is_deterministic)
                     : BindEmulatedGraph(GraphOf(plan), pointer_of);
  CheckWorkspace(pack, bytes, is_convolution ? "a convolution" : "an attention");
  CountEmulatedCall(is_convolution ? "convolution" : "attention");
  EnqueueEmulatedWork(Handles().Find(handle).stream, [=] {
    const auto use_workspace = [=] {
      if (bytes > 0) std::memset(workspace, kUsedByCudnn, static_cast<size_t>(bytes));
    };
    use_workspace();
    work();
    use_workspace();
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

void SetEmulatedEngines(std::vector<EmulatedEngine> engines) { Engines() = std::move(engines); }

}  // namespace ckplan::cuda

using ckplan::cuda::CountEmulatedCall;
using ckplan::cuda::FindEmulatedDescriptor;
using ckplan::cuda::Handles;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  CountEmulatedCall(__func__);
  *handle = Handles().Add<cudnnHandle_t>();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  CountEmulatedCall(__func__);
  Handles().Remove(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  CountEmulatedCall(__func__);
  ckplan::cuda::CheckEmulatedStream(stream);
  Handles().Find(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion() { return ckplan::cuda::kCudnnVersion; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "success" : "a failure of the emulated cuDNN";
}
void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (max_size == 0) return;
  const std::string& error = ckplan::cuda::LastError();
  message[error.copy(message, max_size - 1)] = '\0';
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  CountEmulatedCall(__func__);
  *descriptor = ckplan::cuda::AddEmulatedDescriptor(type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  CountEmulatedCall(__func__);
  ckplan::cuda::RemoveEmulatedDescriptor(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  CountEmulatedCall(__func__);
  ckplan::cuda::EmulatedDescriptor& found = *FindEmulatedDescriptor(descriptor);
  ckplan::cuda::CheckEmulatedComplete(found);
  const cudnnStatus_t status = ckplan::cuda::FinalizeStatus(found);
  found.is_finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  CountEmulatedCall(__func__);
  ckplan::cuda::SetEmulatedAttribute(*FindEmulatedDescriptor(descriptor), name, type, count,
                                     values);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t requested,
                                       int64_t* count, void* values) {
  CountEmulatedCall(__func__);
  return ckplan::cuda::ReadAttribute(*FindEmulatedDescriptor(descriptor), name, requested, count,
                                     values);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant_pack) {
  CountEmulatedCall(__func__);
  return ckplan::cuda::Execute(handle, *FindEmulatedDescriptor(plan),
                               *FindEmulatedDescriptor(variant_pack));
}

}  // extern "C"
