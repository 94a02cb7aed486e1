// A CUDA runtime with one GPU, emulated on the host, so that lib/executor/cuda/gpu and the code
// above it run on every machine. It defines the functions of cuda_runtime.h that the project calls.
// Only tests use it.
//
// Memory of the GPU is memory of the host, filled with a pattern. Work queued on a stream is done
// when the stream is synchronized, or when another stream that is synchronized waits for it, which
// is as late as a GPU may do it; or at once. A call that no
// GPU would accept ends the program with exit code 70: a stream that is not alive, a copy beyond an
// allocation, memory that is not allocated, or memory that is freed while work is queued. The
// runtime emulates neither kernels nor their speed: other code adds kernels
// (host/emulated_blocks.h) and calls of libraries (emulated_cublas.cc, emulated_cudnn.cc) to its
// streams.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "lib/base/check.h"

namespace ckplan::cuda {

struct EmulatedMachine {
  int driver_version = 13000;  // The newest CUDA that the driver supports; 0 if there is no driver.
  int runtime_version = 13000;
  int gpus = 1;
  int compute_major = 9;
  int64_t total_bytes = int64_t{80} << 30;
  bool has_pools = true;
  int64_t context_bytes = int64_t{512} << 20;  // Taken when a stream is first made.
  // Whether work waits until its stream is synchronized. Otherwise it is done at once.
  bool defers_work = true;
  // Maps the names of calls to the errors that they return instead of doing their work.
  std::map<std::string, cudaError_t> failures;
  // Names of faults of the GPU, of the libraries or of their caller that tests plant, to see that
  // they are found. The code that asks IsPlanted for a fault says what it is.
  std::set<std::string> faults;
};

// Forgets all that was allocated, created and queued, and emulates this machine from then on. A
// program starts with EmulatedMachine{}.
void StartEmulatedRuntime(const EmulatedMachine& machine);

// What is allocated, open and queued.
struct EmulatedUse {
  int64_t allocations = 0;
  int64_t bytes = 0;   // Without the context.
  int64_t pinned = 0;  // Allocations of pinned memory of the host.
  int64_t streams = 0;
  int64_t events = 0;
  int64_t queued = 0;   // Copies and other work not done yet.
  int64_t objects = 0;  // Handles and descriptors of libraries.
};
EmulatedUse UseOfEmulatedRuntime();

// Returns how often each function of the runtime and of the libraries was called.
std::map<std::string, int64_t> CallsOfEmulatedRuntime();

// ---- For the code that emulates kernels and libraries -------------------------------------------

// Counts a call of a function that is defined elsewhere.
void CountEmulatedCall(const char* call);
// Adds the work of a library to the stream, which must be alive.
void EnqueueEmulatedWork(cudaStream_t stream, std::function<void()> work);
// Adds a kernel, and counts it as a call of "kernel". A grid that no GPU would accept ends the
// program.
void EnqueueEmulatedKernel(cudaStream_t stream, int64_t blocks, int64_t threads,
                           std::function<void()> work);
void CheckEmulatedStream(cudaStream_t stream);
// Ends the program unless the range is within one allocation.
void CheckEmulatedRange(const void* memory, int64_t bytes);
// Returns the allocation that holds the address, or nothing. Memory of the pool that was freed is
// found until the work is done that was queued before.
struct EmulatedRange {
  const void* begin = nullptr;
  int64_t bytes = 0;
};
EmulatedRange FindEmulatedRange(const void* memory);
// Changes the number of handles and descriptors that are alive.
void CountEmulatedObjects(int64_t change);
bool IsPlanted(const std::string& fault);

// Handles and descriptors of the replaced libraries, which are watched: each is alive when it is
// used, and those that are left are counted (EmulatedUse::objects).
template <typename Object>
class EmulatedObjects {
 public:
  template <typename Handle>
  Handle Add() {
    auto object = std::make_unique<Object>();
    auto* const handle = reinterpret_cast<Handle>(object.get());
    alive_.emplace(handle, std::move(object));
    CountEmulatedObjects(1);
    return handle;
  }
  void Remove(const void* handle) {
    if (IsPlanted("descriptors are kept")) return;
    CKPLAN_CHECK(alive_.erase(handle) == 1, "only an existing object is destroyed");
    CountEmulatedObjects(-1);
  }
  Object& Find(const void* handle) {
    const auto found = alive_.find(handle);
    CKPLAN_CHECK(found != alive_.end(), "a library call uses a live handle");
    return *found->second;
  }

 private:
  std::map<const void*, std::unique_ptr<Object>> alive_;
};

}  // namespace ckplan::cuda
