// Convolutions by cuDNN, through the functions that were found at run time.
//
// The calls of before cuDNN's graph API: they tell of each algorithm whether it is deterministic
// and how much workspace it takes, before anything runs, which is what a plan must know; they exist
// in all of cuDNN 9, deprecated; and a file that includes cuDNN's frontend takes the better part of
// a minute and 2 GB to compile.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

// What is called of cuDNN. Tests fill it with functions of their own.
struct CudnnApi {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) get_error_string = nullptr;
  decltype(&cudnnCreateTensorDescriptor) create_tensor = nullptr;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = nullptr;
  decltype(&cudnnSetTensorNdDescriptor) set_tensor = nullptr;
  decltype(&cudnnCreateFilterDescriptor) create_filter = nullptr;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter = nullptr;
  decltype(&cudnnSetFilterNdDescriptor) set_filter = nullptr;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution = nullptr;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution = nullptr;
  decltype(&cudnnSetConvolutionNdDescriptor) set_convolution = nullptr;
  decltype(&cudnnSetConvolutionGroupCount) set_groups = nullptr;
  decltype(&cudnnSetConvolutionMathType) set_math_type = nullptr;

  decltype(&cudnnGetConvolutionForwardAlgorithm_v7) forward_algorithms = nullptr;
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_workspace = nullptr;
  decltype(&cudnnConvolutionForward) forward = nullptr;
  decltype(&cudnnGetConvolutionBackwardDataAlgorithm_v7) data_algorithms = nullptr;
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) data_workspace = nullptr;
  decltype(&cudnnConvolutionBackwardData) data = nullptr;
  decltype(&cudnnGetConvolutionBackwardFilterAlgorithm_v7) weight_algorithms = nullptr;
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) weight_workspace = nullptr;
  decltype(&cudnnConvolutionBackwardFilter) weights = nullptr;

  // kUnsupported: there is no cuDNN 9.
  static Result<CudnnApi> Load(const std::vector<std::string>& folders);
};

// A handle of the library, and what it prepares.
class CudnnConvolutions {
 public:
  // kUnsupported: the library cannot start, for want of memory for example.
  static Result<std::unique_ptr<CudnnConvolutions>> Create(const CudnnApi& api,
                                                           const DeviceOptions& options,
                                                           cudaStream_t stream);
  ~CudnnConvolutions();
  CudnnConvolutions(const CudnnConvolutions&) = delete;
  CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;

  int64_t version() const;  // 91900 of 9.19.0
  // See Libraries::PrepareConvolution. What it returns must not outlive this.
  Result<std::unique_ptr<Convolution>> Prepare(const ConvolutionShape& shape, ConvPass pass);

 private:
  CudnnConvolutions(const CudnnApi& api, const DeviceOptions& options, cudnnHandle_t handle);

  CudnnApi api_;
  DeviceOptions options_;
  cudnnHandle_t handle_;
};

}  // namespace ckplan::cuda
