// Calls of the CUDA runtime whose failure is our own fault, or the end of the device: nothing that
// a caller could mend. They end the program with exit code 70 and say what failed.
#pragma once

#include <cuda_runtime.h>

#include "lib/base/check.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

inline void CheckCuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  FailCheck(__FILE__, __LINE__, call, cudaGetErrorString(status));
}

// A kernel that could not be started. What fails while it runs is found by Synchronize.
inline void CheckLaunch() { CheckCuda(cudaGetLastError(), "starting a kernel"); }

inline cudaStream_t StreamOf(const Device& device) {
  return static_cast<cudaStream_t>(device.stream());
}

}  // namespace ckplan::cuda
