// A CUDA runtime with one GPU, played by the host, so that lib/cuda/gpu/cuda_device.cc and all that
// stands on it run on every machine. It defines the functions of cuda_runtime.h that the project
// calls. Only for tests.
//
// Memory of the GPU is memory of the host, filled with a pattern. What a stream is given is done
// when the stream is synchronized, or at once. A call that no GPU would take ends the program with
// exit code 70: a stream that is not alive, a copy beyond an allocation, memory that is not
// allocated, or memory that is freed while work is queued. It does not show kernels or their speed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <string>

namespace ckplan::cuda {

struct PlayedMachine {
  int driver_version = 13000;  // The newest CUDA that the driver knows; 0 where there is none.
  int runtime_version = 13000;
  int gpus = 1;
  int compute_major = 9;
  int64_t total_bytes = int64_t{80} << 30;
  int64_t context_bytes = int64_t{512} << 20;  // Taken when a stream is first made.
  // Whether work waits until its stream is synchronized, which is as late as a GPU may do it.
  // Kernels that the host plays run at once, so what is queued before them must do so as well.
  bool defers_work = false;
  // Calls by their names, and what each returns instead of doing its work.
  std::map<std::string, cudaError_t> failures;
};

// Forgets all that was allocated, created and queued, and plays this machine from then on. A
// program starts with PlayedMachine{}.
void StartPlayedRuntime(const PlayedMachine& machine);

// What is alive.
struct PlayedUse {
  int64_t allocations = 0;
  int64_t bytes = 0;  // Without the context.
  int64_t streams = 0;
  int64_t queued = 0;  // Copies and the like that have not been done yet.
};
PlayedUse UseOfPlayedRuntime();

}  // namespace ckplan::cuda
