#include "lib/cuda/played/played_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/check.h"

namespace ckplan::cuda {

namespace {

constexpr size_t kAlignment = 256;  // The alignment of cudaMalloc.
constexpr int kPattern = 0xA7;      // Makes reads of unwritten memory stand out.

struct PlayedStream {
  std::deque<std::function<void()>> work;
};

// An event has a time once the work that was queued before it is done.
struct PlayedEvent {
  std::optional<std::chrono::steady_clock::time_point> time;
};

struct PlayedBlock {
  std::unique_ptr<char, decltype(&std::free)> memory;
  int64_t bytes = 0;
  bool is_pooled = false;
  bool is_released = false;  // Work that was queued before may still use it.
};

class PlayedRuntime {
 public:
  explicit PlayedRuntime(PlayedMachine machine) : machine_(std::move(machine)) {}

  const PlayedMachine& machine() const { return machine_; }
  bool IsPlanted(const std::string& fault) const { return machine_.faults.count(fault) > 0; }

  void CountCall(const char* call) { ++calls_[call]; }
  const std::map<std::string, int64_t>& calls() const { return calls_; }
  void CountObjects(int64_t change) { objects_ += change; }

  // Returns the error that the machine lets the call return instead of doing its work, if any.
  std::optional<cudaError_t> Failure(const char* call) {
    const auto failure = machine_.failures.find(call);
    if (failure == machine_.failures.end()) return std::nullopt;
    return Fail(failure->second);
  }
  cudaError_t Fail(cudaError_t error) { return last_error_ = error; }
  cudaError_t TakeLastError() { return std::exchange(last_error_, cudaSuccess); }

  cudaStream_t AddStream() {
    has_context_ = true;
    auto stream = std::make_unique<PlayedStream>();
    auto* const handle = reinterpret_cast<cudaStream_t>(stream.get());
    streams_.emplace(handle, std::move(stream));
    return handle;
  }
  PlayedStream& Find(cudaStream_t stream) {
    const auto found = streams_.find(stream);
    CKPLAN_CHECK(found != streams_.end(), "work is given to a stream that is alive");
    return *found->second;
  }
  void Remove(cudaStream_t stream) {
    Synchronize(stream);
    streams_.erase(stream);
  }
  void Enqueue(cudaStream_t stream, std::function<void()> work) {
    auto& queue = Find(stream).work;
    queue.push_back(std::move(work));
    if (!machine_.defers_work) Synchronize(stream);
  }
  void Synchronize(cudaStream_t stream) {
    auto& queue = Find(stream).work;
    while (!queue.empty()) {
      const std::function<void()> next = std::move(queue.front());
      queue.pop_front();
      next();
    }
  }

  cudaEvent_t AddEvent() {
    auto event = std::make_shared<PlayedEvent>();
    auto* const handle = reinterpret_cast<cudaEvent_t>(event.get());
    events_.emplace(handle, std::move(event));
    return handle;
  }
  std::shared_ptr<PlayedEvent> Find(cudaEvent_t event) {
    const auto found = events_.find(event);
    CKPLAN_CHECK(found != events_.end(), "an event is alive");
    return found->second;
  }
  void Remove(cudaEvent_t event) {
    (void)Find(event);
    events_.erase(event);
  }

  int64_t FreeBytes() const {
    return machine_.total_bytes - (has_context_ ? machine_.context_bytes : 0) - used_bytes_;
  }
  int64_t pooled_peak() const { return pooled_peak_; }
  void ResetPooledPeak() { pooled_peak_ = pooled_bytes_; }

  cudaError_t Take(void** memory, size_t size, bool is_pooled) {
    const auto bytes = static_cast<int64_t>(size);
    constexpr int64_t kLargestHole = 4096;
    const bool finds_no_hole =
        is_pooled && bytes > kLargestHole && IsPlanted("the pool is fragmented");
    if (bytes > FreeBytes() || finds_no_hole) return Fail(cudaErrorMemoryAllocation);
    const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
    auto* const start = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
    CKPLAN_CHECK(start != nullptr, "tests fit into the host");
    std::memset(start, kPattern, rounded);
    blocks_.emplace(start, PlayedBlock{{start, &std::free}, bytes, is_pooled});
    ++allocations_;
    used_bytes_ += bytes;
    if (is_pooled) pooled_bytes_ += bytes;
    pooled_peak_ = std::max(pooled_peak_, pooled_bytes_);
    *memory = start;
    return cudaSuccess;
  }
  // Ends the program's ownership of the block, and returns its size. Its memory remains until it is
  // forgotten.
  int64_t Release(void* memory, bool is_pooled) {
    const auto found = blocks_.find(static_cast<char*>(memory));
    CKPLAN_CHECK(found != blocks_.end() && found->second.is_pooled == is_pooled &&
                     !found->second.is_released,
                 "what is freed was allocated, and in the same way");
    PlayedBlock& block = found->second;
    block.is_released = true;
    --allocations_;
    used_bytes_ -= block.bytes;
    if (is_pooled) pooled_bytes_ -= block.bytes;
    return block.bytes;
  }
  void Forget(void* memory) { blocks_.erase(static_cast<char*>(memory)); }
  // For work that is done now: also memory that was released after the work was queued.
  PlayedRange RangeOf(const void* memory) const {
    const PlayedBlock* const block = BlockOf(memory);
    return block == nullptr ? PlayedRange{} : PlayedRange{block->memory.get(), block->bytes};
  }
  // For work that is being queued.
  void CheckRange(const void* memory, size_t bytes) const {
    const PlayedBlock* const block = BlockOf(memory);
    const PlayedRange range = block == nullptr || block->is_released
                                  ? PlayedRange{}
                                  : PlayedRange{block->memory.get(), block->bytes};
    const auto* const start = static_cast<const char*>(memory);
    const auto* const first = static_cast<const char*>(range.begin);
    CKPLAN_CHECK(first != nullptr && start + bytes <= first + range.bytes,
                 "the GPU works within allocations");
  }

  PlayedUse Use() const {
    PlayedUse use{allocations_,
                  used_bytes_,
                  static_cast<int64_t>(streams_.size()),
                  static_cast<int64_t>(events_.size()),
                  0,
                  objects_};
    for (const auto& [handle, stream] : streams_) {
      use.queued += static_cast<int64_t>(stream->work.size());
    }
    return use;
  }

 private:
  // Returns the block with the address, or null.
  const PlayedBlock* BlockOf(const void* memory) const {
    const auto* const start = static_cast<const char*>(memory);
    auto after = blocks_.upper_bound(const_cast<char*>(start));
    if (after == blocks_.begin()) return nullptr;
    const auto& [first, block] = *--after;
    return start <= first + block.bytes ? &block : nullptr;
  }

  PlayedMachine machine_;
  std::map<std::string, int64_t> calls_;
  int64_t objects_ = 0;
  cudaError_t last_error_ = cudaSuccess;
  bool has_context_ = false;
  int64_t allocations_ = 0;  // Not released.
  int64_t used_bytes_ = 0;
  int64_t pooled_bytes_ = 0;
  int64_t pooled_peak_ = 0;
  std::map<char*, PlayedBlock> blocks_;
  std::map<cudaStream_t, std::unique_ptr<PlayedStream>> streams_;
  std::map<cudaEvent_t, std::shared_ptr<PlayedEvent>> events_;
};

// CUDA's functions have no argument that says on which machine they are called.
std::unique_ptr<PlayedRuntime>& Runtime() {
  static auto runtime = std::make_unique<PlayedRuntime>(PlayedMachine());
  return runtime;
}

cudaMemPool_t DefaultPool() {
  static char pool;
  return reinterpret_cast<cudaMemPool_t>(&pool);
}

template <typename Action>
cudaError_t Play(const char* call, const Action& action) {
  PlayedRuntime& runtime = *Runtime();
  runtime.CountCall(call);
  const std::optional<cudaError_t> failure = runtime.Failure(call);
  return failure ? *failure : action(runtime);
}

template <typename Value>
cudaError_t Answer(const char* call, Value* to, Value value) {
  return Play(call, [&](PlayedRuntime&) {
    *to = value;
    return cudaSuccess;
  });
}

}  // namespace

void StartPlayedRuntime(const PlayedMachine& machine) {
  Runtime() = std::make_unique<PlayedRuntime>(machine);
}

PlayedUse UseOfPlayedRuntime() { return Runtime()->Use(); }

std::map<std::string, int64_t> CallsOfPlayedRuntime() { return Runtime()->calls(); }

void CountPlayedCall(const char* call) { Runtime()->CountCall(call); }

void EnqueuePlayedWork(cudaStream_t stream, std::function<void()> work) {
  Runtime()->Enqueue(stream, std::move(work));
}

void EnqueuePlayedKernel(cudaStream_t stream, int64_t blocks, int64_t threads,
                         std::function<void()> work) {
  constexpr int64_t kMostThreads = 1024;
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
  CKPLAN_CHECK(threads > 0 && threads <= kMostThreads, "a block has at most 1024 threads");
  CKPLAN_CHECK(blocks > 0 && blocks <= kMostBlocks, "a launch has at most 2^31 - 1 blocks");
  CountPlayedCall("kernel");
  if (IsPlanted("the driver is older than the kernels")) {
    Runtime()->Fail(cudaErrorUnsupportedPtxVersion);
    return;
  }
  if (IsPlanted("a kernel is lost") && CallsOfPlayedRuntime().at("kernel") % 50 == 0) return;
  EnqueuePlayedWork(stream, std::move(work));
}

void CheckPlayedStream(cudaStream_t stream) { (void)Runtime()->Find(stream); }

void CheckPlayedRange(const void* memory, int64_t bytes) {
  CKPLAN_CHECK(bytes >= 0, "the GPU works within allocations");
  Runtime()->CheckRange(memory, static_cast<size_t>(bytes));
}

PlayedRange FindPlayedRange(const void* memory) { return Runtime()->RangeOf(memory); }

void CountPlayedObjects(int64_t change) { Runtime()->CountObjects(change); }

bool IsPlanted(const std::string& fault) { return Runtime()->IsPlanted(fault); }

}  // namespace ckplan::cuda

using ckplan::cuda::Answer;
using ckplan::cuda::Play;
using ckplan::cuda::PlayedMachine;
using ckplan::cuda::PlayedRuntime;
using ckplan::cuda::Runtime;

// ---- The machine --------------------------------------------------------------------------------

cudaError_t cudaDriverGetVersion(int* version) {
  return Answer(__func__, version, Runtime()->machine().driver_version);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return Answer(__func__, version, Runtime()->machine().runtime_version);
}

cudaError_t cudaGetDeviceCount(int* count) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    const PlayedMachine& machine = runtime.machine();
    // A driver supports all versions of CUDA with its own major version.
    const bool is_old = machine.driver_version / 1000 < machine.runtime_version / 1000;
    if (is_old) return runtime.Fail(cudaErrorInsufficientDriver);
    if (machine.gpus == 0) return runtime.Fail(cudaErrorNoDevice);
    *count = machine.gpus;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    CKPLAN_CHECK(device == 0, "the first GPU is the one that is used");
    *properties = {};
    std::strcpy(properties->name, "a played GPU");
    properties->major = runtime.machine().compute_major;
    properties->totalGlobalMem = static_cast<size_t>(runtime.machine().total_bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    CKPLAN_CHECK(device == 0, "the first GPU is the one that is used");
    if (attribute != cudaDevAttrMemoryPoolsSupported) return runtime.Fail(cudaErrorInvalidValue);
    const bool lacks_pools = runtime.IsPlanted("the driver has no pools");
    *value = runtime.machine().has_pools && !lacks_pools ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return Play(__func__, [&](PlayedRuntime&) {
    CKPLAN_CHECK(device == 0, "the first GPU is the one that is used");
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
      return "an error that was asked for";
  }
}

// ---- Streams ------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    CKPLAN_CHECK(flags == cudaStreamNonBlocking, "the stream does not wait for the default stream");
    *stream = runtime.AddStream();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    runtime.Remove(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    if (runtime.IsPlanted("nobody waits for the stream")) return cudaSuccess;
    runtime.Synchronize(stream);
    return cudaSuccess;
  });
}

// ---- Events -------------------------------------------------------------------------------------

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    *event = runtime.AddEvent();
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    runtime.Remove(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    const auto recorded = runtime.Find(event);
    recorded->time.reset();
    runtime.Enqueue(stream, [recorded] { recorded->time = std::chrono::steady_clock::now(); });
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    const auto& begin = runtime.Find(first)->time;
    const auto& end = runtime.Find(second)->time;
    if (!begin || !end) return runtime.Fail(cudaErrorNotReady);
    *milliseconds = std::chrono::duration<float, std::milli>(*end - *begin).count();
    return cudaSuccess;
  });
}

// ---- Memory -------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    *available = static_cast<size_t>(runtime.FreeBytes());
    *total = static_cast<size_t>(runtime.machine().total_bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return Play(__func__, [&](PlayedRuntime& runtime) { return runtime.Take(memory, bytes, false); });
}

cudaError_t cudaFree(void* memory) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    if (memory == nullptr) return cudaSuccess;
    CKPLAN_CHECK(runtime.Use().queued == 0, "memory is freed when no work is left that may use it");
    if (runtime.IsPlanted("memory is kept")) return cudaSuccess;
    runtime.Release(memory, false);
    runtime.Forget(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    runtime.Find(stream);
    return runtime.Take(memory, bytes, true);
  });
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    const int64_t bytes = runtime.Release(memory, true);
    if (runtime.IsPlanted("memory of the pool is used again at once")) {
      std::memset(memory, ckplan::cuda::kPattern, static_cast<size_t>(bytes));
    }
    runtime.Enqueue(stream, [&runtime, memory] { runtime.Forget(memory); });
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  return Answer(__func__, pool, ckplan::cuda::DefaultPool());
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
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
  return Play(__func__, [&](PlayedRuntime& runtime) {
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
  return Play(__func__, [&](PlayedRuntime& runtime) {
    if (runtime.IsPlanted("a copy is a byte too long")) ++bytes;
    if (kind != cudaMemcpyDeviceToHost) runtime.CheckRange(to, bytes);
    if (kind != cudaMemcpyHostToDevice) runtime.CheckRange(from, bytes);
    runtime.Enqueue(stream, [=] { std::memmove(to, from, bytes); });
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return Play(__func__, [&](PlayedRuntime& runtime) {
    runtime.CheckRange(memory, bytes);
    runtime.Enqueue(stream, [=] { std::memset(memory, value, bytes); });
    return cudaSuccess;
  });
}
