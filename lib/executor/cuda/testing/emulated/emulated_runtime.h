// A CUDA runtime with one GPU, emulated on the host, so that lib/executor/cuda/gpu and the code
// above it run on every machine. It defines the functions of cuda_runtime.h that the project calls.
// Only tests use it.
//
// GPU memory is host memory filled with a pattern. Work queued on a stream runs when the stream is
// synchronized, or when another synchronized stream waits for it, which is as late as a GPU may run
// it; alternatively, it runs at once. A call that no GPU would accept ends the program with exit
// code 70: a dead stream, a copy beyond an allocation, unallocated memory, or memory that is freed
// while work is queued. The runtime emulates neither kernels nor speed: other code adds kernels
// (host/emulated_blocks.h) and library calls (emulated_cublas.cc, emulated_cudnn.cc) to its
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
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

struct EmulatedMachine {
  int driver_version =
      13000;  // The newest CUDA version that the driver supports; 0 without a driver.
  int runtime_version = 13000;
  int gpus = 1;
  int compute_major = 9;
  int64_t total_bytes = int64_t{80} << 30;
  bool has_pools = true;
  int64_t context_bytes = int64_t{512} << 20;  // Allocated when the first stream is created.
  // Defers work until its stream is synchronized. Otherwise work runs at once.
  bool defers_work = true;
  // Maps call names to errors that the calls return instead of working.
  std::map<std::string, cudaError_t> failures;
  // Names of faults of the GPU, the libraries or their caller that tests plant to check that they
  // are detected. The code that calls IsPlanted with a name defines the fault.
  std::set<std::string> faults;
};

// Resets everything that was allocated, created and queued, and emulates this machine from now on.
// Programs start with EmulatedMachine{}.
void StartEmulatedRuntime(const EmulatedMachine& machine);

// What is allocated, open and queued.
struct EmulatedUse {
  int64_t allocations = 0;
  int64_t bytes = 0;   // Excludes the context.
  int64_t pinned = 0;  // Pinned host allocations.
  int64_t streams = 0;
  int64_t events = 0;
  int64_t queued = 0;   // Pending copies and other work.
  int64_t objects = 0;  // Library handles and descriptors.
};
EmulatedUse UseOfEmulatedRuntime();

// Returns how often each runtime and library function was called.
std::map<std::string, int64_t> CallsOfEmulatedRuntime();

// ---- For the code that emulates kernels and libraries -------------------------------------------

// Counts a call of a function that is defined elsewhere.
void CountEmulatedCall(const char* call);
// Adds library work to the stream, which must be alive.
void EnqueueEmulatedWork(cudaStream_t stream, std::function<void()> work);
// Adds a kernel, counted as a call of "kernel". Ends the program for a grid that no GPU would
// accept.
void EnqueueEmulatedKernel(cudaStream_t stream, int64_t blocks, int64_t threads,
                           std::function<void()> work);
void CheckEmulatedStream(cudaStream_t stream);
// Ends the program unless the range is within one allocation.
void CheckEmulatedRange(const void* memory, int64_t bytes);
// Returns the allocation that contains the address, or nothing. Freed pool memory is still found
// until all work queued before has run.
struct EmulatedRange {
  const void* begin = nullptr;
  int64_t bytes = 0;
};
EmulatedRange FindEmulatedRange(const void* memory);
// Changes the number of live handles and descriptors.
void CountEmulatedObjects(int64_t change);
bool IsPlanted(const std::string& fault);

// Handles and descriptors of the emulated libraries. Checks that each is alive when it is used, and
// counts those that are left (EmulatedUse::objects).
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

// For devices that call no library.
class UnusedLibraries : public Libraries {
 public:
  int64_t GemmWorkspace(const GemmShape&) const override { return 0; }
  void Gemm(const GemmShape&, const void*, const void*, void*, void*) override {}
  Result<std::unique_ptr<Convolution>> PrepareConvolution(const ConvolutionShape&,
                                                          ConvPass) override {
    return MakeError(ErrorCode::kUnsupported, "no convolution");
  }
  Result<std::unique_ptr<LibraryAttention>> PrepareAttention(const LibraryAttentionShape&,
                                                             AttentionPass) override {
    return MakeError(ErrorCode::kUnsupported, "no attention");
  }
};

}  // namespace ckplan::cuda
