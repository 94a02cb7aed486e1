// Replaces cuDNN where played_runtime.h replaces the CUDA runtime. The program loads it as it would
// load cuDNN. Convolutions are plain loops that run as work of the stream. A call that breaks
// cuDNN's rules ends the program: a descriptor that is not alive, not set or does not fit the
// others, an algorithm that was not offered or is not deterministic, or tensors and workspaces
// outside of allocations.
#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/base/check.h"
#include "lib/cuda/played/plain_convolution.h"
#include "lib/cuda/played/played_library.h"
#include "lib/cuda/played/played_runtime.h"

namespace ckplan::cuda {

namespace {

constexpr size_t kCudnnVersion = 91900;
constexpr int kUsedByCudnn = 0x5B;  // What a convolution leaves in its workspace.

struct PlayedCudnn {
  cudaStream_t stream = nullptr;
};
struct PlayedTensor {
  cudnnDataType_t type{};
  std::vector<int64_t> dims, strides;
};
struct PlayedFilter {
  cudnnDataType_t type{};
  std::vector<int64_t> dims;
};
struct PlayedConvolution {
  std::vector<int64_t> pads, strides, dilations;
  int groups = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

template <typename Object>
PlayedObjects<Object>& Objects() {
  static PlayedObjects<Object> objects;
  return objects;
}

PlayedCudnn& Of(cudnnHandle_t handle) { return Objects<PlayedCudnn>().Find(handle); }
PlayedTensor& Of(cudnnTensorDescriptor_t tensor) { return Objects<PlayedTensor>().Find(tensor); }
PlayedFilter& Of(cudnnFilterDescriptor_t filter) { return Objects<PlayedFilter>().Find(filter); }
PlayedConvolution& Of(cudnnConvolutionDescriptor_t convolution) {
  return Objects<PlayedConvolution>().Find(convolution);
}

template <typename Object, typename Handle>
cudnnStatus_t AddTo(const char* call, Handle* handle) {
  CountPlayedCall(call);
  *handle = Objects<Object>().template Add<Handle>();
  return CUDNN_STATUS_SUCCESS;
}
template <typename Object>
cudnnStatus_t RemoveFrom(const char* call, const void* handle) {
  CountPlayedCall(call);
  Objects<Object>().Remove(handle);
  return CUDNN_STATUS_SUCCESS;
}

std::vector<int64_t> ListOf(const int* values, int count) { return {values, values + count}; }

std::vector<int64_t> SpatialOf(const std::vector<int64_t>& dims) {
  CKPLAN_CHECK(dims.size() == 4 || dims.size() == 5, "a convolution has two axes or three");
  return {dims.begin() + 2, dims.end()};
}

// Returns the bytes of a tensor or filter, which must be positive, with elements that follow each
// other.
template <typename Described>
int64_t BytesOf(const Described& described) {
  int64_t count = 1;
  for (const int64_t dim : described.dims) {
    CKPLAN_CHECK(dim > 0, "a tensor of cuDNN has elements");
    count *= dim;
  }
  return count * (described.type == CUDNN_DATA_BFLOAT16 ? 2 : 4);
}

void CheckDense(const PlayedTensor& tensor) {
  int64_t stride = 1;
  for (size_t i = tensor.dims.size(); i-- > 0; stride *= tensor.dims[i]) {
    CKPLAN_CHECK(tensor.strides[i] == stride, "tensors have no gaps");
  }
}

// Returns the convolution that the descriptors describe together.
ConvolutionShape ShapeOf(const PlayedTensor& x, const PlayedFilter& w, const PlayedTensor& y,
                         const PlayedConvolution& convolution) {
  ConvolutionShape shape;
  shape.in = SpatialOf(x.dims);
  shape.out = SpatialOf(y.dims);
  shape.kernel = SpatialOf(w.dims);
  if (IsPlanted("a convolution has a stride too many")) ++shape.out[0];
  CheckDense(x);
  CheckDense(y);
  CKPLAN_CHECK(x.type == y.type && x.type == w.type, "the tensors of a convolution have one type");
  CKPLAN_CHECK(x.dims[0] == y.dims[0] && y.dims[1] == w.dims[0] &&
                   x.dims[1] == w.dims[1] * convolution.groups &&
                   w.dims[0] % convolution.groups == 0,
               "the tensors of a convolution fit each other");
  shape.type = x.type == CUDNN_DATA_BFLOAT16 ? ElementType::kBFloat16 : ElementType::kFloat32;
  shape.batch = x.dims[0];
  shape.groups = convolution.groups;
  shape.in_channels = w.dims[1];
  shape.out_channels = w.dims[0] / convolution.groups;
  shape.strides = convolution.strides;
  shape.dilations = convolution.dilations;
  shape.pads = convolution.pads;
  const size_t axes = shape.in.size();
  CKPLAN_CHECK(
      shape.out.size() == axes && shape.kernel.size() == axes && shape.strides.size() == axes,
      "the descriptors of a convolution have the same axes");
  for (size_t i = 0; i < axes; ++i) {
    const int64_t covered = (shape.kernel[i] - 1) * shape.dilations[i] + 1;
    CKPLAN_CHECK(shape.out[i] == (shape.in[i] + 2 * shape.pads[i] - covered) / shape.strides[i] + 1,
                 "the output of a convolution has the size that its input gives");
  }
  return shape;
}

// An algorithm that the replaced library offers. All passes offer the same ones, fastest first. The
// fastest one is not deterministic, as in cuDNN.
struct Offered {
  int algorithm;
  bool is_deterministic;
  bool has_tensor_cores;
};
constexpr Offered kOffered[] = {
    {0, false, true}, {1, true, true}, {1, true, false}, {2, true, false}};

size_t WorkspaceOf(int algorithm, cudnnMathType_t math) {
  const size_t bytes = algorithm == 2 ? 0 : 512 * static_cast<size_t>(algorithm + 1);
  return math == CUDNN_FMA_MATH ? bytes : 2 * bytes;
}

template <typename Algorithm, typename Found>
cudnnStatus_t Offer(const char* call, cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                    cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t convolution,
                    cudnnTensorDescriptor_t y, int max_count, int* count, Found* found) {
  CountPlayedCall(call);
  (void)Of(handle);
  (void)ShapeOf(Of(x), Of(w), Of(y), Of(convolution));
  *count = 0;
  for (const Offered& offered : kOffered) {
    if (*count == max_count) break;
    if (offered.has_tensor_cores && Of(convolution).math == CUDNN_FMA_MATH) continue;
    Found& entry = found[(*count)++];
    entry = {};
    entry.algo = static_cast<Algorithm>(offered.algorithm);
    entry.status = CUDNN_STATUS_SUCCESS;
    entry.determinism = offered.is_deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
    entry.mathType = offered.has_tensor_cores ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
    entry.memory = WorkspaceOf(offered.algorithm, entry.mathType);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetWorkspaceSize(const char* call, cudnnHandle_t handle,
                               cudnnConvolutionDescriptor_t convolution, int algorithm,
                               size_t* bytes) {
  CountPlayedCall(call);
  (void)Of(handle);
  if (algorithm > 2) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = WorkspaceOf(algorithm, Of(convolution).math);
  return CUDNN_STATUS_SUCCESS;
}

struct Workspace {
  void* data = nullptr;
  size_t bytes = 0;
};

void CheckWorkspace(const Workspace& workspace, int algorithm, cudnnMathType_t math) {
  CKPLAN_CHECK(algorithm == 1 || algorithm == 2, "the algorithm is offered and deterministic");
  const size_t needed = WorkspaceOf(algorithm, math);
  const size_t given =
      IsPlanted("the workspace of a convolution is too small") ? needed - 1 : workspace.bytes;
  CKPLAN_CHECK(given >= needed, "a convolution has the workspace that it asked for");
  if (workspace.bytes == 0) return;
  CKPLAN_CHECK(reinterpret_cast<uintptr_t>(workspace.data) % 256 == 0, "a workspace is aligned");
  CheckPlayedRange(workspace.data, static_cast<int64_t>(workspace.bytes));
}

cudnnStatus_t Convolve(const char* call, ConvPass pass, cudnnHandle_t handle, const void* alpha,
                       const void* beta, cudnnTensorDescriptor_t x, const void* x_data,
                       cudnnFilterDescriptor_t w, const void* w_data, cudnnTensorDescriptor_t y,
                       const void* y_data, cudnnConvolutionDescriptor_t convolution, int algorithm,
                       const Workspace& workspace) {
  CountPlayedCall(call);
  const ConvolutionShape shape = ShapeOf(Of(x), Of(w), Of(y), Of(convolution));
  CKPLAN_CHECK(*static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0,
               "a convolution replaces its result");
  CheckWorkspace(workspace, algorithm, Of(convolution).math);
  CheckPlayedRange(x_data, BytesOf(Of(x)));
  CheckPlayedRange(w_data, BytesOf(Of(w)));
  CheckPlayedRange(y_data, BytesOf(Of(y)));
  EnqueuePlayedWork(Of(handle).stream, [=] {
    if (workspace.bytes > 0) std::memset(workspace.data, kUsedByCudnn, workspace.bytes);
    RunPlainConvolution(shape, pass, const_cast<void*>(x_data), const_cast<void*>(w_data),
                        const_cast<void*>(y_data));
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

}  // namespace ckplan::cuda

using ckplan::cuda::AddTo;
using ckplan::cuda::Convolve;
using ckplan::cuda::CountPlayedCall;
using ckplan::cuda::ListOf;
using ckplan::cuda::Of;
using ckplan::cuda::Offer;
using ckplan::cuda::PlayedConvolution;
using ckplan::cuda::PlayedCudnn;
using ckplan::cuda::PlayedFilter;
using ckplan::cuda::PlayedTensor;
using ckplan::cuda::RemoveFrom;
using ckplan::cuda::SetWorkspaceSize;

extern "C" {

// ---- Handles and descriptors --------------------------------------------------------------------

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return AddTo<PlayedCudnn>(__func__, handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return RemoveFrom<PlayedCudnn>(__func__, handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  CountPlayedCall(__func__);
  ckplan::cuda::CheckPlayedStream(stream);
  Of(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion() { return ckplan::cuda::kCudnnVersion; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "success" : "a failure of the replaced cuDNN";
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return AddTo<PlayedTensor>(__func__, tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return RemoveFrom<PlayedTensor>(__func__, tensor);
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int rank, const int dims[], const int strides[]) {
  CountPlayedCall(__func__);
  Of(tensor) = {type, ListOf(dims, rank), ListOf(strides, rank)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return AddTo<PlayedFilter>(__func__, filter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return RemoveFrom<PlayedFilter>(__func__, filter);
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int dims[]) {
  CountPlayedCall(__func__);
  CKPLAN_CHECK(format == CUDNN_TENSOR_NCHW, "filters are laid out like the tensors");
  Of(filter) = {type, ListOf(dims, rank)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return AddTo<PlayedConvolution>(__func__, convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return RemoveFrom<PlayedConvolution>(__func__, convolution);
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int rank,
                                              const int pads[], const int strides[],
                                              const int dilations[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  CountPlayedCall(__func__);
  CKPLAN_CHECK(mode == CUDNN_CROSS_CORRELATION, "ONNX does not flip kernels");
  CKPLAN_CHECK(compute_type == CUDNN_DATA_FLOAT, "sums are of float32");
  PlayedConvolution& played = Of(convolution);
  played.pads = ListOf(pads, rank);
  played.strides = ListOf(strides, rank);
  played.dilations = ListOf(dilations, rank);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
  CountPlayedCall(__func__);
  CKPLAN_CHECK(groups > 0, "a convolution has groups");
  Of(convolution).groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution,
                                          cudnnMathType_t math) {
  CountPlayedCall(__func__);
  Of(convolution).math = math;
  return CUDNN_STATUS_SUCCESS;
}

// ---- The three passes ---------------------------------------------------------------------------

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int max_count, int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
  return Offer<cudnnConvolutionFwdAlgo_t>(__func__, handle, x, w, convolution, y, max_count, count,
                                          found);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t, const cudnnFilterDescriptor_t,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return SetWorkspaceSize(__func__, handle, convolution, algorithm, bytes);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x, const void* x_data,
                                      const cudnnFilterDescriptor_t w, const void* w_data,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y, void* y_data) {
  return Convolve(__func__, ckplan::cuda::ConvPass::kForward, handle, alpha, beta, x, x_data, w,
                  w_data, y, y_data, convolution, algorithm, {workspace, bytes});
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t x,
    const int max_count, int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return Offer<cudnnConvolutionBwdDataAlgo_t>(__func__, handle, x, w, convolution, y, max_count,
                                              count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return SetWorkspaceSize(__func__, handle, convolution, algorithm, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w, const void* w_data,
                                           const cudnnTensorDescriptor_t y, const void* y_data,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t bytes, const void* beta,
                                           const cudnnTensorDescriptor_t x, void* x_data) {
  return Convolve(__func__, ckplan::cuda::ConvPass::kBackwardData, handle, alpha, beta, x, x_data,
                  w, w_data, y, y_data, convolution, algorithm, {workspace, bytes});
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t w,
    const int max_count, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return Offer<cudnnConvolutionBwdFilterAlgo_t>(__func__, handle, x, w, convolution, y, max_count,
                                                count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return SetWorkspaceSize(__func__, handle, convolution, algorithm, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x, const void* x_data,
                                             const cudnnTensorDescriptor_t y, const void* y_data,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, size_t bytes, const void* beta,
                                             const cudnnFilterDescriptor_t w, void* w_data) {
  return Convolve(__func__, ckplan::cuda::ConvPass::kBackwardWeights, handle, alpha, beta, x,
                  x_data, w, w_data, y, y_data, convolution, algorithm, {workspace, bytes});
}

}  // extern "C"
