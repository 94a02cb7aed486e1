// Checks the calls of cuDNN with replacements that record the contents of descriptors and compute
// with plain loops.
#include "lib/cuda/gpu/cudnn_convolution.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/cuda/played/plain_convolution.h"

namespace ckplan::cuda {
namespace {

struct Tensor {
  cudnnDataType_t type{};
  std::vector<int64_t> dims, strides;
};
struct Descriptor {
  std::vector<int64_t> pads, strides, dilations;
  int groups = 1;
  cudnnMathType_t math{};
  cudnnDataType_t compute{};
};

// The algorithms that the replaced library offers, fastest first, and the algorithm that was run.
struct Offer {
  int algorithm = 0;
  cudnnDeterminism_t determinism = CUDNN_DETERMINISTIC;
  size_t bytes = 0;
  cudnnMathType_t math = CUDNN_FMA_MATH;
};
std::vector<Offer> offers;
struct Seen {
  int algorithm = -1;
  void* workspace = nullptr;
  size_t bytes = 0;
  cudnnMathType_t math{};
  cudnnDataType_t compute{};
} seen;
int alive = 0;  // Number of descriptors not yet destroyed.

std::vector<int64_t> List(const int* values, int count) { return {values, values + count}; }

template <typename Struct, typename Handle>
cudnnStatus_t Create(Handle* handle) {
  ++alive;
  *handle = reinterpret_cast<Handle>(new Struct);
  return CUDNN_STATUS_SUCCESS;
}
template <typename Struct, typename Handle>
cudnnStatus_t Destroy(Handle handle) {
  --alive;
  delete reinterpret_cast<Struct*>(handle);
  return CUDNN_STATUS_SUCCESS;
}

const Tensor& Of(cudnnTensorDescriptor_t handle) { return *reinterpret_cast<Tensor*>(handle); }
const Tensor& Of(cudnnFilterDescriptor_t handle) { return *reinterpret_cast<Tensor*>(handle); }
const Descriptor& Of(cudnnConvolutionDescriptor_t handle) {
  return *reinterpret_cast<Descriptor*>(handle);
}

cudnnStatus_t SetTensor(cudnnTensorDescriptor_t handle, cudnnDataType_t type, int rank,
                        const int* dims, const int* strides) {
  *reinterpret_cast<Tensor*>(handle) = {type, List(dims, rank), List(strides, rank)};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetFilter(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                        cudnnTensorFormat_t format, int rank, const int* dims) {
  CHECK(format == CUDNN_TENSOR_NCHW);
  *reinterpret_cast<Tensor*>(handle) = {type, List(dims, rank), {}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetConvolution(cudnnConvolutionDescriptor_t handle, int rank, const int* pads,
                             const int* strides, const int* dilations, cudnnConvolutionMode_t mode,
                             cudnnDataType_t compute) {
  CHECK(mode == CUDNN_CROSS_CORRELATION);
  auto& descriptor = *reinterpret_cast<Descriptor*>(handle);
  descriptor.pads = List(pads, rank);
  descriptor.strides = List(strides, rank);
  descriptor.dilations = List(dilations, rank);
  descriptor.compute = compute;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetGroups(cudnnConvolutionDescriptor_t handle, int groups) {
  reinterpret_cast<Descriptor*>(handle)->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetMathType(cudnnConvolutionDescriptor_t handle, cudnnMathType_t math) {
  reinterpret_cast<Descriptor*>(handle)->math = math;
  return CUDNN_STATUS_SUCCESS;
}

template <typename Performance, typename Algorithm>
cudnnStatus_t Answer(int max_count, int* count, Performance* found) {
  *count = std::min(max_count, static_cast<int>(offers.size()));
  for (int i = 0; i < *count; ++i) {
    const Offer& offer = offers[static_cast<size_t>(i)];
    found[i] = {};
    found[i].algo = static_cast<Algorithm>(offer.algorithm);
    found[i].status = CUDNN_STATUS_SUCCESS;
    found[i].determinism = offer.determinism;
    found[i].mathType = offer.math;
  }
  return CUDNN_STATUS_SUCCESS;
}
// Returns the workspace size as the library computes it: it depends on the math type set in the
// descriptor.
cudnnStatus_t BytesOf(cudnnConvolutionDescriptor_t convolution, int algorithm, size_t* bytes) {
  for (const Offer& offer : offers) {
    if (offer.algorithm != algorithm || offer.math != Of(convolution).math) continue;
    *bytes = offer.bytes;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

ConvolutionShape ShapeOf(const Tensor& x, const Tensor& w, const Tensor& y,
                         const Descriptor& descriptor) {
  for (const Tensor* tensor : {&x, &y}) {
    int64_t stride = 1;
    for (size_t i = tensor->dims.size(); i-- > 0; stride *= tensor->dims[i]) {
      CHECK(tensor->strides[i] == stride);
    }
  }
  CHECK(x.dims[0] == y.dims[0]);
  CHECK(x.dims[1] == w.dims[1] * descriptor.groups);
  CHECK(y.dims[1] == w.dims[0]);
  CHECK(x.type == y.type);
  CHECK(x.type == w.type);
  const auto spatial = [](const Tensor& tensor) {
    return std::vector<int64_t>(tensor.dims.begin() + 2, tensor.dims.end());
  };
  ConvolutionShape shape;
  shape.type = x.type == CUDNN_DATA_BFLOAT16 ? ElementType::kBFloat16 : ElementType::kFloat32;
  shape.batch = x.dims[0];
  shape.groups = descriptor.groups;
  shape.in_channels = w.dims[1];
  shape.out_channels = w.dims[0] / descriptor.groups;
  shape.in = spatial(x);
  shape.out = spatial(y);
  shape.kernel = spatial(w);
  shape.strides = descriptor.strides;
  shape.dilations = descriptor.dilations;
  shape.pads = descriptor.pads;
  return shape;
}

cudnnStatus_t Compute(ConvPass pass, const Tensor& x, const void* x_data, const Tensor& w,
                      const void* w_data, const Tensor& y, const void* y_data,
                      const Descriptor& descriptor, int algorithm, void* workspace, size_t bytes) {
  seen = {algorithm, workspace, bytes, descriptor.math, descriptor.compute};
  RunPlainConvolution(ShapeOf(x, w, y, descriptor), pass, const_cast<void*>(x_data),
                      const_cast<void*>(w_data), const_cast<void*>(y_data));
  return CUDNN_STATUS_SUCCESS;
}

CudnnApi FakeApi() {
  CudnnApi api;
  api.create = [](cudnnHandle_t*) { return CUDNN_STATUS_SUCCESS; };
  api.destroy = [](cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; };
  api.set_stream = [](cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; };
  api.create_tensor = Create<Tensor, cudnnTensorDescriptor_t>;
  api.destroy_tensor = Destroy<Tensor, cudnnTensorDescriptor_t>;
  api.set_tensor = SetTensor;
  api.create_filter = Create<Tensor, cudnnFilterDescriptor_t>;
  api.destroy_filter = Destroy<Tensor, cudnnFilterDescriptor_t>;
  api.set_filter = SetFilter;
  api.create_convolution = Create<Descriptor, cudnnConvolutionDescriptor_t>;
  api.destroy_convolution = Destroy<Descriptor, cudnnConvolutionDescriptor_t>;
  api.set_convolution = SetConvolution;
  api.set_groups = SetGroups;
  api.set_math_type = SetMathType;
  api.forward_algorithms = [](cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
                              cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, int max_count,
                              int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
    return Answer<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(max_count, count,
                                                                            found);
  };
  api.forward_workspace = [](cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
                             cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t,
                             cudnnConvolutionFwdAlgo_t algorithm,
                             size_t* bytes) { return BytesOf(convolution, algorithm, bytes); };
  api.forward = [](cudnnHandle_t, const void*, cudnnTensorDescriptor_t x, const void* x_data,
                   cudnnFilterDescriptor_t w, const void* w_data,
                   cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm,
                   void* workspace, size_t bytes, const void*, cudnnTensorDescriptor_t y,
                   void* y_data) {
    return Compute(ConvPass::kForward, Of(x), x_data, Of(w), w_data, Of(y), y_data, Of(convolution),
                   algorithm, workspace, bytes);
  };
  api.data_algorithms = [](cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
                           cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, int max_count,
                           int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
    return Answer<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(max_count,
                                                                                    count, found);
  };
  api.data_workspace = [](cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
                          cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t,
                          cudnnConvolutionBwdDataAlgo_t algorithm,
                          size_t* bytes) { return BytesOf(convolution, algorithm, bytes); };
  api.data = [](cudnnHandle_t, const void*, cudnnFilterDescriptor_t w, const void* w_data,
                cudnnTensorDescriptor_t y, const void* y_data,
                cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdDataAlgo_t algorithm,
                void* workspace, size_t bytes, const void*, cudnnTensorDescriptor_t x,
                void* x_data) {
    return Compute(ConvPass::kBackwardData, Of(x), x_data, Of(w), w_data, Of(y), y_data,
                   Of(convolution), algorithm, workspace, bytes);
  };
  api.weight_algorithms = [](cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
                             cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t, int max_count,
                             int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
    return Answer<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
        max_count, count, found);
  };
  api.weight_workspace = [](cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
                            cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t,
                            cudnnConvolutionBwdFilterAlgo_t algorithm,
                            size_t* bytes) { return BytesOf(convolution, algorithm, bytes); };
  api.weights = [](cudnnHandle_t, const void*, cudnnTensorDescriptor_t x, const void* x_data,
                   cudnnTensorDescriptor_t y, const void* y_data,
                   cudnnConvolutionDescriptor_t convolution,
                   cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t bytes,
                   const void*, cudnnFilterDescriptor_t w, void* w_data) {
    return Compute(ConvPass::kBackwardWeights, Of(x), x_data, Of(w), w_data, Of(y), y_data,
                   Of(convolution), algorithm, workspace, bytes);
  };
  return api;
}

// 2 samples, 2 groups of 3 and 2 channels; each axis has a different size.
ConvolutionShape Shape() {
  ConvolutionShape shape;
  shape.batch = 2;
  shape.groups = 2;
  shape.in_channels = 3;
  shape.out_channels = 2;
  shape.in = {7, 9};
  shape.kernel = {3, 2};
  shape.strides = {2, 3};
  shape.dilations = {1, 2};
  shape.pads = {1, 2};
  shape.out = {4, 4};
  return shape;
}

std::vector<float> Numbers(size_t count, size_t factor) {
  std::vector<float> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i * factor % 13) - 6);
  return numbers;
}

TEST_CASE("cudnn: the three passes receive shapes, pads, strides, dilations and groups") {
  offers = {{1, CUDNN_DETERMINISTIC, 64}};
  const ConvolutionShape shape = Shape();
  {
    const auto cudnn = CudnnConvolutions::Create(FakeApi(), {}, nullptr);
    for (const ConvPass pass :
         {ConvPass::kForward, ConvPass::kBackwardData, ConvPass::kBackwardWeights}) {
      std::vector<float> x = Numbers(2 * 6 * 7 * 9, 5);
      std::vector<float> w = Numbers(4 * 3 * 3 * 2, 7);
      std::vector<float> y = Numbers(2 * 4 * 4 * 4, 3);
      std::vector<float> x2 = x, w2 = w, y2 = y;
      char workspace[1024];
      auto convolution = (*cudnn)->Prepare(shape, pass);
      REQUIRE(convolution.ok());
      CHECK((*convolution)->workspace() == 64);
      (*convolution)->Run(x.data(), w.data(), y.data(), workspace);
      RunPlainConvolution(shape, pass, x2.data(), w2.data(), y2.data());
      CHECK(x == x2);
      CHECK(w == w2);
      CHECK(y == y2);
      CHECK(seen.workspace == workspace);
      CHECK(seen.bytes == 64);
      CHECK(seen.compute == CUDNN_DATA_FLOAT);
    }
  }
  CHECK(alive == 0);
}

TEST_CASE("cudnn: the fastest deterministic algorithm within the limit is chosen") {
  offers = {{0, CUDNN_NON_DETERMINISTIC, 0},
            {1, CUDNN_DETERMINISTIC, 4096},
            {2, CUDNN_DETERMINISTIC, 100},
            {3, CUDNN_DETERMINISTIC, 0}};
  const auto wide = CudnnConvolutions::Create(FakeApi(), {}, nullptr);
  const auto narrow = CudnnConvolutions::Create(FakeApi(), {.workspace_limit = 100}, nullptr);
  CHECK((*(*wide)->Prepare(Shape(), ConvPass::kForward))->workspace() == 4096);
  CHECK((*(*narrow)->Prepare(Shape(), ConvPass::kBackwardWeights))->workspace() == 100);
}

TEST_CASE("cudnn: no algorithm is within the limit") {
  const auto message = [](const DeviceOptions& options) {
    const auto cudnn = CudnnConvolutions::Create(FakeApi(), options, nullptr);
    const auto none = (*cudnn)->Prepare(Shape(), ConvPass::kBackwardData);
    REQUIRE(!none.ok());
    CHECK(none.error().code == ErrorCode::kUnsupported);
    return none.error().message;
  };
  constexpr size_t kGiB = size_t{1} << 30;
  offers = {{0, CUDNN_NON_DETERMINISTIC, 0},
            {1, CUDNN_DETERMINISTIC, 2 * kGiB},
            {2, CUDNN_DETERMINISTIC, kGiB},
            {3, CUDNN_DETERMINISTIC, 3 * kGiB}};
  CHECK(message({.workspace_limit = 100}).find("raise the workspace limit to 1073741824") !=
        std::string::npos);
  // The user did not request the default limit, so the algorithm with the smallest workspace may
  // exceed it.
  const auto usual = CudnnConvolutions::Create(FakeApi(), {}, nullptr);
  CHECK((*(*usual)->Prepare(Shape(), ConvPass::kForward))->workspace() == kGiB);
  offers = {{0, CUDNN_NON_DETERMINISTIC, 0}};
  CHECK(message({}).find("no deterministic algorithm") != std::string::npos);
}

// Returns the call that is run for a tensor of `type`.
Seen RunOnce(const DeviceOptions& options, ElementType type) {
  std::vector<float> x(2 * 6 * 7 * 9), w(4 * 3 * 3 * 2), y(2 * 4 * 4 * 4);
  char workspace[1024];
  ConvolutionShape shape = Shape();
  shape.type = type;
  const auto cudnn = CudnnConvolutions::Create(FakeApi(), options, nullptr);
  (*(*cudnn)->Prepare(shape, ConvPass::kForward))->Run(x.data(), w.data(), y.data(), workspace);
  return seen;
}

TEST_CASE("cudnn: an algorithm runs in the arithmetic in which it was offered") {
  offers = {{1, CUDNN_DETERMINISTIC, 8, CUDNN_TENSOR_OP_MATH},
            {1, CUDNN_DETERMINISTIC, 16, CUDNN_FMA_MATH},
            {2, CUDNN_DETERMINISTIC, 32, CUDNN_FMA_MATH}};
  const Seen quick = RunOnce({.allow_tf32 = true}, ElementType::kFloat32);
  CHECK(quick.math == CUDNN_TENSOR_OP_MATH);
  CHECK(quick.bytes == 8);
  CHECK(RunOnce({}, ElementType::kBFloat16).math == CUDNN_TENSOR_OP_MATH);
  const Seen exact = RunOnce({}, ElementType::kFloat32);
  CHECK(exact.math == CUDNN_FMA_MATH);
  CHECK(exact.bytes == 16);
  offers = {{3, CUDNN_DETERMINISTIC, 8, CUDNN_DEFAULT_MATH}};
  CHECK(RunOnce({}, ElementType::kBFloat16).math == CUDNN_DEFAULT_MATH);
}

TEST_CASE("cudnn: tensors whose sizes exceed 32 bits are refused") {
  ConvolutionShape shape = Shape();
  shape.batch = int64_t{1} << 23;  // 6 x 7 x 9 x 2^23 elements.
  const auto cudnn = CudnnConvolutions::Create(FakeApi(), {}, nullptr);
  CHECK((*cudnn)->Prepare(shape, ConvPass::kForward).error().code == ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ckplan::cuda
