// Convolutions by cuDNN, whose functions are loaded at run time.
//
// This file uses the API from before cuDNN's graph API. For each algorithm, before running it, that
// API reports whether the algorithm is deterministic and how much workspace it needs, which a plan
// must know. The API is deprecated but exists in all of cuDNN 9. A file that includes cuDNN's
// frontend for the graph API takes most of a minute and 2 GB of memory to compile.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/cuda/device.h"

namespace ckplan::cuda {

// The functions of cuDNN that are used. Tests replace them.
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

  // Fails with kUnsupported if there is no cuDNN 9.
  static Result<CudnnApi> Load(const std::vector<std::string>& folders);
};

// A handle of the library, and the convolutions prepared with it.
class CudnnConvolutions {
 public:
  // Fails with kUnsupported if the library cannot start, for example for lack of memory.
  static Result<std::unique_ptr<CudnnConvolutions>> Create(const CudnnApi& api,
                                                           const DeviceOptions& options,
                                                           cudaStream_t stream);
  ~CudnnConvolutions();
  CudnnConvolutions(const CudnnConvolutions&) = delete;
  CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;

  int64_t version() const;  // For example 91900 for 9.19.0.
  // See Libraries::PrepareConvolution. The returned object must not outlive this one.
  Result<std::unique_ptr<Convolution>> Prepare(const ConvolutionShape& shape, ConvPass pass);

 private:
  CudnnConvolutions(const CudnnApi& api, const DeviceOptions& options, cudnnHandle_t handle);

  CudnnApi api_;
  DeviceOptions options_;
  cudnnHandle_t handle_;
};

}  // namespace ckplan::cuda
