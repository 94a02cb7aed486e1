// The emulated runtime's state: streams and their work, events, graphs, and memory. Only the
// runtime (emulated_runtime.h) includes it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {

// The streams and events of the emulated CUDA runtime.

using EmulatedWork = std::vector<std::function<void()>>;

struct QueuedWork {
  std::function<void()> run;
  // If the work is a wait: the other stream, and the number up to which its work must have run.
  cudaStream_t other = nullptr;
  int64_t number = 0;
};

struct EmulatedStream {
  std::deque<QueuedWork> work;  // Pending work.
  int64_t done = 0;             // Number of finished items; the first one has number 1.
  bool is_first = false;        // The compute stream.
  // During a capture, the captured work, which is not queued.
  std::optional<EmulatedWork> captured;

  int64_t last() const { return done + static_cast<int64_t>(work.size()); }
};

// An event gets a time once the work queued before it has run.
struct EmulatedEvent {
  std::optional<std::chrono::steady_clock::time_point> time;
  cudaStream_t stream = nullptr;  // Where, and after which work, it was last recorded.
  int64_t number = 0;
};

class EmulatedStreams {
 public:
  // With `defers_work`, work runs when something waits for it, otherwise at once. With `hurries`,
  // all streams but the first run their work as soon as its dependencies have run.
  EmulatedStreams(bool defers_work, bool hurries) : defers_work_(defers_work), hurries_(hurries) {}

  cudaStream_t AddStream();
  EmulatedStream& Find(cudaStream_t stream);
  void Remove(cudaStream_t stream);
  void Enqueue(cudaStream_t stream, std::function<void()> work);
  // Makes the stream's later work wait for the work before the event's recording, if any.
  void EnqueueWait(cudaStream_t stream, cudaEvent_t event);
  void Synchronize(cudaStream_t stream);

  // Captured work must not allocate or free memory, or wait.
  void CheckNoCapture(const char* why) const;
  void BeginCapture(cudaStream_t stream);
  EmulatedWork EndCapture(cudaStream_t stream);

  cudaEvent_t AddEvent();
  std::shared_ptr<EmulatedEvent> Find(cudaEvent_t event);
  void Remove(cudaEvent_t event);
  void Record(cudaEvent_t event, cudaStream_t stream);

  bool were_used() const { return were_used_; }  // True if a stream was ever created.
  int64_t count() const { return static_cast<int64_t>(streams_.size()); }
  int64_t event_count() const { return static_cast<int64_t>(events_.size()); }
  int64_t queued() const;  // Pending work.

 private:
  void Add(cudaStream_t stream, QueuedWork work);
  void RunUntil(cudaStream_t stream, int64_t number);
  void RunNext(EmulatedStream& stream);
  void RunReady(EmulatedStream& stream);

  const bool defers_work_;
  const bool hurries_;
  bool were_used_ = false;
  std::map<cudaStream_t, std::unique_ptr<EmulatedStream>> streams_;
  std::map<cudaEvent_t, std::shared_ptr<EmulatedEvent>> events_;
};

inline constexpr size_t kEmulatedAlignment = 256;  // The alignment of cudaMalloc.
inline constexpr int kPattern = 0xA7;              // Makes reads of unwritten memory stand out.

// An instantiated graph.
struct EmulatedGraph {
  EmulatedWork work;
  int64_t starts = 0;
};

struct EmulatedBlock {
  std::unique_ptr<char, decltype(&std::free)> memory;
  int64_t bytes = 0;
  bool is_pooled = false;
  bool is_released = false;  // Work that was queued before may still use it.
};

// Pinned host memory.
struct PinnedBlock {
  std::unique_ptr<char, decltype(&std::free)> memory;
  size_t bytes = 0;
};

class EmulatedRuntime {
 public:
  explicit EmulatedRuntime(EmulatedMachine machine)
      : machine_(std::move(machine)),
        streams_(machine_.defers_work, IsPlanted("side streams hurry")) {}

  const EmulatedMachine& machine() const { return machine_; }
  bool IsPlanted(const std::string& fault) const { return machine_.faults.count(fault) > 0; }

  void CountCall(const char* call) { ++calls_[call]; }
  const std::map<std::string, int64_t>& calls() const { return calls_; }
  void CountObjects(int64_t change) { objects_ += change; }

  // Returns the error that the machine injects into this call, if any.
  std::optional<cudaError_t> Failure(const char* call) {
    const auto failure = machine_.failures.find(call);
    if (failure == machine_.failures.end()) return std::nullopt;
    return Fail(failure->second);
  }
  cudaError_t Fail(cudaError_t error) { return last_error_ = error; }
  cudaError_t TakeLastError() { return std::exchange(last_error_, cudaSuccess); }

  EmulatedStreams& streams() { return streams_; }

  cudaGraph_t EndCapture(cudaStream_t stream) {
    auto graph = std::make_unique<EmulatedWork>(streams_.EndCapture(stream));
    auto* const handle = reinterpret_cast<cudaGraph_t>(graph.get());
    graphs_.emplace(handle, std::move(graph));
    CountObjects(1);
    return handle;
  }
  cudaGraphExec_t Instantiate(cudaGraph_t graph) {
    const auto found = graphs_.find(graph);
    CKPLAN_CHECK(found != graphs_.end(), "a graph is alive");
    auto copy = std::make_unique<EmulatedGraph>(EmulatedGraph{*found->second});
    auto* const handle = reinterpret_cast<cudaGraphExec_t>(copy.get());
    started_graphs_.emplace(handle, std::move(copy));
    CountObjects(1);
    return handle;
  }
  void Launch(cudaGraphExec_t graph, cudaStream_t stream) {
    const auto found = started_graphs_.find(graph);
    CKPLAN_CHECK(found != started_graphs_.end(), "a graph is alive when it starts");
    EmulatedGraph& started = *found->second;
    const bool loses_one =
        IsPlanted("a graph loses its last piece of work") ||
        (started.starts++ > 0 && IsPlanted("a graph loses work the second time"));
    for (size_t i = 0; i + (loses_one ? 1 : 0) < started.work.size(); ++i) {
      streams_.Enqueue(stream, started.work[i]);
    }
  }
  void Remove(cudaGraph_t graph) {
    CKPLAN_CHECK(graphs_.erase(graph) == 1, "a graph is alive");
    CountObjects(-1);
  }
  void Remove(cudaGraphExec_t graph) {
    CKPLAN_CHECK(started_graphs_.erase(graph) == 1,
                 "an instantiated graph is alive until it is destroyed");
    CountObjects(-1);
  }

  int64_t FreeBytes() const {
    return machine_.total_bytes - (streams_.were_used() ? machine_.context_bytes : 0) - used_bytes_;
  }
  int64_t pooled_peak() const { return pooled_peak_; }
  void ResetPooledPeak() { pooled_peak_ = pooled_bytes_; }

  cudaError_t Take(void** memory, size_t size, bool is_pooled) {
    streams_.CheckNoCapture("no memory is allocated while work is captured");
    const auto bytes = static_cast<int64_t>(size);
    constexpr int64_t kLargestHole = 4096;
    const bool finds_no_hole =
        is_pooled && bytes > kLargestHole && IsPlanted("the pool is fragmented");
    if (bytes > FreeBytes() || finds_no_hole) return Fail(cudaErrorMemoryAllocation);
    const size_t rounded =
        (size + kEmulatedAlignment - 1) / kEmulatedAlignment * kEmulatedAlignment;
    auto* const start = static_cast<char*>(std::aligned_alloc(kEmulatedAlignment, rounded));
    CKPLAN_CHECK(start != nullptr, "the host has enough memory for the tests");
    std::memset(start, kPattern, rounded);
    blocks_.emplace(start, EmulatedBlock{{start, &std::free}, bytes, is_pooled});
    ++allocations_;
    used_bytes_ += bytes;
    if (is_pooled) pooled_bytes_ += bytes;
    pooled_peak_ = std::max(pooled_peak_, pooled_bytes_);
    *memory = start;
    return cudaSuccess;
  }
  // Ends the program's ownership of the block, and returns its size. The memory remains until the
  // block is forgotten.
  int64_t Release(void* memory, bool is_pooled) {
    streams_.CheckNoCapture("no memory is freed while work is captured");
    const auto found = blocks_.find(static_cast<char*>(memory));
    CKPLAN_CHECK(found != blocks_.end() && found->second.is_pooled == is_pooled &&
                     !found->second.is_released,
                 "memory is freed by the allocator it came from");
    EmulatedBlock& block = found->second;
    block.is_released = true;
    --allocations_;
    used_bytes_ -= block.bytes;
    if (is_pooled) pooled_bytes_ -= block.bytes;
    return block.bytes;
  }
  void Forget(void* memory) { blocks_.erase(static_cast<char*>(memory)); }
  cudaError_t Pin(void** memory, size_t bytes) {
    auto* const start = static_cast<char*>(std::malloc(std::max<size_t>(bytes, 1)));
    CKPLAN_CHECK(start != nullptr, "the host has enough memory for the tests");
    std::memset(start, kPattern, bytes);
    pinned_.emplace(start, PinnedBlock{{start, &std::free}, bytes});
    *memory = start;
    return cudaSuccess;
  }
  void Unpin(void* memory) {
    CKPLAN_CHECK(pinned_.erase(static_cast<char*>(memory)) == 1,
                 "only pinned host memory is released as pinned");
  }
  bool IsPinned(const void* memory, size_t bytes) const {
    const auto* const start = static_cast<const char*>(memory);
    auto after = pinned_.upper_bound(const_cast<char*>(start));
    if (after == pinned_.begin()) return false;
    const auto& [first, block] = *--after;
    return start + bytes <= first + block.bytes;
  }
  // For running work: includes memory that was released after the work was queued.
  EmulatedRange RangeOf(const void* memory) const {
    const EmulatedBlock* const block = BlockOf(memory);
    return block == nullptr ? EmulatedRange{} : EmulatedRange{block->memory.get(), block->bytes};
  }
  // For work that is being queued.
  void CheckRange(const void* memory, size_t bytes) const {
    const EmulatedBlock* const block = BlockOf(memory);
    const EmulatedRange range = block == nullptr || block->is_released
                                    ? EmulatedRange{}
                                    : EmulatedRange{block->memory.get(), block->bytes};
    const auto* const start = static_cast<const char*>(memory);
    const auto* const first = static_cast<const char*>(range.begin);
    CKPLAN_CHECK(first != nullptr && start + bytes <= first + range.bytes,
                 "the GPU accesses only allocated memory");
  }

  EmulatedUse Use() const {
    return EmulatedUse{allocations_,
                       used_bytes_,
                       static_cast<int64_t>(pinned_.size()),
                       streams_.count(),
                       streams_.event_count(),
                       streams_.queued(),
                       objects_};
  }

 private:
  // Returns the block that contains the address, or null.
  const EmulatedBlock* BlockOf(const void* memory) const {
    const auto* const start = static_cast<const char*>(memory);
    auto after = blocks_.upper_bound(const_cast<char*>(start));
    if (after == blocks_.begin()) return nullptr;
    const auto& [first, block] = *--after;
    return start <= first + block.bytes ? &block : nullptr;
  }

  EmulatedMachine machine_;
  std::map<std::string, int64_t> calls_;
  int64_t objects_ = 0;
  cudaError_t last_error_ = cudaSuccess;
  int64_t allocations_ = 0;  // Not yet released.
  int64_t used_bytes_ = 0;
  int64_t pooled_bytes_ = 0;
  int64_t pooled_peak_ = 0;
  std::map<char*, EmulatedBlock> blocks_;
  std::map<char*, PinnedBlock> pinned_;
  EmulatedStreams streams_;
  std::map<cudaGraph_t, std::unique_ptr<EmulatedWork>> graphs_;
  std::map<cudaGraphExec_t, std::unique_ptr<EmulatedGraph>> started_graphs_;
};

}  // namespace ckplan::cuda
