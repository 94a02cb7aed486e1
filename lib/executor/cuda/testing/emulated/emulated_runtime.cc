#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/executor/cuda/testing/emulated/emulated_state.h"

namespace ckplan::cuda {

namespace {

// Global, because CUDA's functions have no argument for the machine.
std::unique_ptr<EmulatedRuntime>& Runtime() {
  static auto runtime = std::make_unique<EmulatedRuntime>(EmulatedMachine());
  return runtime;
}

cudaMemPool_t DefaultPool() {
  static char pool;
  return reinterpret_cast<cudaMemPool_t>(&pool);
}

template <typename Action>
cudaError_t RunCall(const char* call, const Action& action) {
  EmulatedRuntime& runtime = *Runtime();
  runtime.CountCall(call);
  const std::optional<cudaError_t> failure = runtime.Failure(call);
  return failure ? *failure : action(runtime);
}

template <typename Value>
cudaError_t ReturnValue(const char* call, Value* to, Value value) {
  return RunCall(call, [&](EmulatedRuntime&) {
    *to = value;
    return cudaSuccess;
  });
}

}  // namespace

void StartEmulatedRuntime(const EmulatedMachine& machine) {
  Runtime() = std::make_unique<EmulatedRuntime>(machine);
}

EmulatedUse UseOfEmulatedRuntime() { return Runtime()->Use(); }

std::map<std::string, int64_t> CallsOfEmulatedRuntime() { return Runtime()->calls(); }

void CountEmulatedCall(const char* call) { Runtime()->CountCall(call); }

void EnqueueEmulatedWork(cudaStream_t stream, std::function<void()> work) {
  Runtime()->streams().Enqueue(stream, std::move(work));
}

void EnqueueEmulatedKernel(cudaStream_t stream, int64_t blocks, int64_t threads,
                           std::function<void()> work) {
  constexpr int64_t kMaxThreads = 1024;
  constexpr int64_t kMaxBlocks = (int64_t{1} << 31) - 1;
  CKPLAN_CHECK(threads > 0 && threads <= kMaxThreads, "a block has at most 1024 threads");
  CKPLAN_CHECK(blocks > 0 && blocks <= kMaxBlocks, "a launch has at most 2^31 - 1 blocks");
  CountEmulatedCall("kernel");
  if (IsPlanted("the driver is older than the kernels")) {
    Runtime()->Fail(cudaErrorUnsupportedPtxVersion);
    return;
  }
  if (IsPlanted("a kernel is lost") && CallsOfEmulatedRuntime().at("kernel") % 50 == 0) return;
  EnqueueEmulatedWork(stream, std::move(work));
}

void CheckEmulatedStream(cudaStream_t stream) { (void)Runtime()->streams().Find(stream); }

void CheckEmulatedRange(const void* memory, int64_t bytes) {
  CKPLAN_CHECK(bytes >= 0, "the GPU accesses only allocated memory");
  Runtime()->CheckRange(memory, static_cast<size_t>(bytes));
}

EmulatedRange FindEmulatedRange(const void* memory) { return Runtime()->RangeOf(memory); }

void CountEmulatedObjects(int64_t change) { Runtime()->CountObjects(change); }

bool IsPlanted(const std::string& fault) { return Runtime()->IsPlanted(fault); }

}  // namespace ckplan::cuda

using ckplan::cuda::EmulatedMachine;
using ckplan::cuda::EmulatedRuntime;
using ckplan::cuda::ReturnValue;
using ckplan::cuda::RunCall;
using ckplan::cuda::Runtime;

// ---- The machine --------------------------------------------------------------------------------

cudaError_t cudaDriverGetVersion(int* version) {
  return ReturnValue(__func__, version, Runtime()->machine().driver_version);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return ReturnValue(__func__, version, Runtime()->machine().runtime_version);
}

cudaError_t cudaGetDeviceCount(int* count) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    const EmulatedMachine& machine = runtime.machine();
    // A driver supports all CUDA versions with its own major version.
    const bool is_old = machine.driver_version / 1000 < machine.runtime_version / 1000;
    if (is_old) return runtime.Fail(cudaErrorInsufficientDriver);
    if (machine.gpus == 0) return runtime.Fail(cudaErrorNoDevice);
    *count = machine.gpus;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(device == 0, "only GPU 0 is used");
    *properties = {};
    std::strcpy(properties->name, "an emulated GPU");
    properties->major = runtime.machine().compute_major;
    properties->totalGlobalMem = static_cast<size_t>(runtime.machine().total_bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(device == 0, "only GPU 0 is used");
    if (attribute != cudaDevAttrMemoryPoolsSupported) return runtime.Fail(cudaErrorInvalidValue);
    const bool lacks_pools = runtime.IsPlanted("the driver has no pools");
    *value = runtime.machine().has_pools && !lacks_pools ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return RunCall(__func__, [&](EmulatedRuntime&) {
    CKPLAN_CHECK(device == 0, "only GPU 0 is used");
    return cudaSuccess;
  });
}

cudaError_t cudaGetLastError() { return Runtime()->TakeLastError(); }

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorDevicesUnavailable:
      return "CUDA-capable device(s) is/are busy or unavailable";
    default:
      return "a requested error";
  }
}

// ---- Streams ------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(flags == cudaStreamNonBlocking, "the stream doesn't wait for the default stream");
    *stream = runtime.streams().AddStream();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    runtime.streams().Remove(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    if (runtime.IsPlanted("nobody waits for the stream")) return cudaSuccess;
    if (runtime.IsPlanted("no memory for code")) return cudaErrorMemoryAllocation;
    runtime.streams().Synchronize(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    if (runtime.IsPlanted("no stream waits for another")) return cudaSuccess;
    runtime.streams().EnqueueWait(stream, event);
    return cudaSuccess;
  });
}

// ---- Graphs -------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    runtime.streams().BeginCapture(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    *graph = runtime.EndCapture(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* started, cudaGraph_t graph, unsigned long long) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    *started = runtime.Instantiate(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    runtime.Remove(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t started, cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    runtime.Launch(started, stream);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t started) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(runtime.Use().queued == 0, "a graph is destroyed after its work is done");
    runtime.Remove(started);
    return cudaSuccess;
  });
}

// ---- Events -------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(flags == cudaEventDisableTiming, "events are created without timing");
    *event = runtime.streams().AddEvent();
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    *event = runtime.streams().AddEvent();
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    runtime.streams().Remove(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    runtime.streams().Record(event, stream);
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    const auto& begin = runtime.streams().Find(first)->time;
    const auto& end = runtime.streams().Find(second)->time;
    if (!begin || !end) return runtime.Fail(cudaErrorNotReady);
    *milliseconds = std::chrono::duration<float, std::milli>(*end - *begin).count();
    return cudaSuccess;
  });
}

// ---- Memory -------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    *available = static_cast<size_t>(runtime.FreeBytes());
    *total = static_cast<size_t>(runtime.machine().total_bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return RunCall(__func__,
                 [&](EmulatedRuntime& runtime) { return runtime.Take(memory, bytes, false); });
}

cudaError_t cudaFree(void* memory) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    if (memory == nullptr) return cudaSuccess;
    CKPLAN_CHECK(runtime.Use().queued == 0, "memory is freed after all work that may use it");
    if (runtime.IsPlanted("memory is kept")) return cudaSuccess;
    runtime.Release(memory, false);
    runtime.Forget(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) { return runtime.Pin(memory, bytes); });
}

cudaError_t cudaFreeHost(void* memory) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(runtime.Use().queued == 0, "memory is freed after all work that may use it");
    runtime.Unpin(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    runtime.streams().Find(stream);
    return runtime.Take(memory, bytes, true);
  });
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    const int64_t bytes = runtime.Release(memory, true);
    if (runtime.IsPlanted("memory of the pool is used again at once")) {
      std::memset(memory, ckplan::cuda::kPattern, static_cast<size_t>(bytes));
    }
    runtime.streams().Enqueue(stream, [&runtime, memory] { runtime.Forget(memory); });
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  return ReturnValue(__func__, pool, ckplan::cuda::DefaultPool());
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(pool == ckplan::cuda::DefaultPool(), "there is one pool");
    uint64_t number = 0;
    std::memcpy(&number, value, sizeof(number));
    if (attribute != cudaMemPoolAttrUsedMemHigh || number != 0) {
      return runtime.Fail(cudaErrorInvalidValue);
    }
    runtime.ResetPooledPeak();
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    CKPLAN_CHECK(pool == ckplan::cuda::DefaultPool(), "there is one pool");
    if (attribute != cudaMemPoolAttrUsedMemHigh) return runtime.Fail(cudaErrorInvalidValue);
    const auto peak = static_cast<uint64_t>(runtime.pooled_peak());
    std::memcpy(value, &peak, sizeof(peak));
    return cudaSuccess;
  });
}

// ---- Work ---------------------------------------------------------------------------------------

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    if (runtime.IsPlanted("a copy is a byte too long")) ++bytes;
    if (kind != cudaMemcpyDeviceToHost) runtime.CheckRange(to, bytes);
    if (kind != cudaMemcpyHostToDevice) runtime.CheckRange(from, bytes);
    runtime.streams().Enqueue(stream, [=] { std::memmove(to, from, bytes); });
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return RunCall(__func__, [&](EmulatedRuntime& runtime) {
    if (!runtime.IsPinned(memory, bytes)) runtime.CheckRange(memory, bytes);
    runtime.streams().Enqueue(stream, [=] { std::memset(memory, value, bytes); });
    return cudaSuccess;
  });
}
