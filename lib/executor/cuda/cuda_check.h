// Checks CUDA runtime and library calls whose failure is a bug in this program or a device defect,
// which no caller could handle. A failure ends the program with exit code 70 and a message that
// names the call. Running out of memory is not a bug and is reported separately: code is loaded
// when it first runs, and needs memory.
#pragma once

#include <cuda_runtime.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/check.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

[[noreturn]] inline void FailOutOfMemory(std::string_view call) {
  std::string message("the GPU has no memory left for kernel code or a library (");
  message.append(call).append("); plan with a smaller budget, or use a smaller batch");
  throw OutOfMemory(std::move(message));
}

inline void CheckCuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  if (status == cudaErrorMemoryAllocation) FailOutOfMemory(call);
  FailCheck(__FILE__, __LINE__, call, cudaGetErrorString(status));
}

// Like CheckCuda, but for destructors and the functions they call: never throws. Ignores failures
// while an exception propagates, because the exception reports the original error.
inline void CheckRelease(cudaError_t status, const char* call) noexcept {
  if (status == cudaSuccess || std::uncaught_exceptions() > 0) return;
  FailCheck(__FILE__, __LINE__, call, cudaGetErrorString(status));
}

// Checks that a kernel was started. Failures while it runs are detected by Synchronize.
inline void CheckLaunch() { CheckCuda(cudaGetLastError(), "starting a kernel"); }

inline cudaStream_t StreamOf(const Device& device) {
  return static_cast<cudaStream_t>(device.stream());
}

}  // namespace ckplan::cuda
