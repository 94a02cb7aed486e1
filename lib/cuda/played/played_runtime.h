// A CUDA runtime with one GPU, emulated on the host, so that lib/cuda/gpu/cuda_device.cc and the
// code above it run on every machine. It defines the functions of cuda_runtime.h that the project
// calls. Only tests use it.
//
// Memory of the GPU is memory of the host, filled with a pattern. Work queued on a stream is done
// when the stream is synchronized, or at once. A call that no GPU would accept ends the program
// with exit code 70: a stream that is not alive, a copy beyond an allocation, memory that is not
// allocated, or memory that is freed while work is queued. The runtime emulates neither kernels nor
// their speed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <string>

namespace ckplan::cuda {

struct PlayedMachine {
  int driver_version = 13000;  // The newest CUDA that the driver supports; 0 if there is no driver.
  int runtime_version = 13000;
  int gpus = 1;
  int compute_major = 9;
  int64_t total_bytes = int64_t{80} << 30;
  int64_t context_bytes = int64_t{512} << 20;  // Taken when a stream is first made.
  // Whether work waits until its stream is synchronized, which is as late as a GPU may do it.
  // Kernels that the host emulates run at once, so work that is queued before them must also run at
  // once.
  bool defers_work = false;
  // Maps the names of calls to the errors that they return instead of doing their work.
  std::map<std::string, cudaError_t> failures;
};

// Forgets all that was allocated, created and queued, and emulates this machine from then on. A
// program starts with PlayedMachine{}.
void StartPlayedRuntime(const PlayedMachine& machine);

// What is allocated, open and queued.
struct PlayedUse {
  int64_t allocations = 0;
  int64_t bytes = 0;  // Without the context.
  int64_t streams = 0;
  int64_t queued = 0;  // Copies and other work not done yet.
};
PlayedUse UseOfPlayedRuntime();

}  // namespace ckplan::cuda
