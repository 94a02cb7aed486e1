// Code shared by the tests of cuDNN calls: the functions of the emulated library
// (emulated/emulated_cudnn.cc), and memory of the emulated GPU. Only tests use it.
#pragma once

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/executor/cuda/gpu/cudnn_backend.h"

namespace ckplan::cuda {

inline CudnnApi EmulatedApi() {
  CudnnApi api;
  api.create = cudnnCreate;
  api.destroy = cudnnDestroy;
  api.set_stream = cudnnSetStream;
  api.get_version = cudnnGetVersion;
  api.get_error_string = cudnnGetErrorString;
  api.get_last_error_string = cudnnGetLastErrorString;
  api.create_descriptor = cudnnBackendCreateDescriptor;
  api.destroy_descriptor = cudnnBackendDestroyDescriptor;
  api.set_attribute = cudnnBackendSetAttribute;
  api.get_attribute = cudnnBackendGetAttribute;
  api.finalize = cudnnBackendFinalize;
  api.execute = cudnnBackendExecute;
  return api;
}

// A copy of values in GPU memory.
template <typename Value>
class OnGpu {
 public:
  explicit OnGpu(const std::vector<Value>& values) : count_(values.size()) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, count_ * sizeof(Value)) == cudaSuccess);
    data_ = static_cast<Value*>(memory);
    std::copy(values.begin(), values.end(), data_);
  }
  ~OnGpu() { CHECK(cudaFree(data_) == cudaSuccess); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  Value* data() { return data_; }
  std::vector<Value> values() const { return {data_, data_ + count_}; }

 private:
  size_t count_;
  Value* data_ = nullptr;
};

}  // namespace ckplan::cuda
