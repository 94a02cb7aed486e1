#include "lib/cuda/gpu/cudnn_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "lib/cuda/cuda_check.h"
#include "lib/cuda/gpu/shared_library.h"

namespace ckplan::cuda {

namespace {

// Default limit of the workspace, in bytes. It is exceeded if all algorithms need more.
constexpr int64_t kUsualLimit = int64_t{256} << 20;

void CheckStatus(const CudnnApi& api, cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  if (status == CUDNN_STATUS_ALLOC_FAILED) FailOutOfMemory(call);
  FailCheck(__FILE__, __LINE__, call, api.get_error_string(status));
}

// A cuDNN descriptor, destroyed with its owner.
template <typename Handle>
class Descriptor {
 public:
  using Create = cudnnStatus_t (*)(Handle*);
  using Destroy = cudnnStatus_t (*)(Handle);

  Descriptor(const CudnnApi& api, Create create, Destroy destroy) : destroy_(destroy) {
    CheckStatus(api, create(&handle_), "creating a descriptor");
  }
  ~Descriptor() { destroy_(handle_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Handle get() const { return handle_; }

 private:
  Destroy destroy_;
  Handle handle_ = nullptr;
};

std::vector<int> Narrow(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<int64_t> Joined(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  std::vector<int64_t> dims{first, second};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

// Returns whether the tensor's dimensions and strides fit into the 32-bit integers of cuDNN.
bool Fits(const std::vector<int64_t>& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim <= 0 || dim > std::numeric_limits<int>::max() / elements) return false;
    elements *= dim;
  }
  return true;
}

// One pass of a convolution. `Pass` selects the functions of the library for this pass.
template <typename Pass>
class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(const CudnnApi& api, cudnnHandle_t handle, const ConvolutionShape& shape)
      : api_(api),
        handle_(handle),
        x_(api, api.create_tensor, api.destroy_tensor),
        y_(api, api.create_tensor, api.destroy_tensor),
        w_(api, api.create_filter, api.destroy_filter),
        convolution_(api, api.create_convolution, api.destroy_convolution) {
    const cudnnDataType_t type =
        shape.type == ElementType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    SetTensor(x_.get(), type, Joined(shape.batch, shape.groups * shape.in_channels, shape.in));
    SetTensor(y_.get(), type, Joined(shape.batch, shape.groups * shape.out_channels, shape.out));
    const std::vector<int> filter =
        Narrow(Joined(shape.groups * shape.out_channels, shape.in_channels, shape.kernel));
    Check(api.set_filter(w_.get(), type, CUDNN_TENSOR_NCHW, static_cast<int>(filter.size()),
                         filter.data()),
          "cudnnSetFilterNdDescriptor");
    const std::vector<int> pads = Narrow(shape.pads);
    const std::vector<int> strides = Narrow(shape.strides);
    const std::vector<int> dilations = Narrow(shape.dilations);
    Check(api.set_convolution(convolution_.get(), static_cast<int>(pads.size()), pads.data(),
                              strides.data(), dilations.data(), CUDNN_CROSS_CORRELATION,
                              CUDNN_DATA_FLOAT),
          "cudnnSetConvolutionNdDescriptor");
    Check(api.set_groups(convolution_.get(), static_cast<int>(shape.groups)),
          "cudnnSetConvolutionGroupCount");
  }

  // Takes the first algorithm, in cuDNN's order of speed, that is deterministic and within the
  // limit. cuDNN reports speed and determinism of an algorithm for a certain math type, which is
  // then used to run the algorithm. There is one exception: if TF32 is not allowed, algorithms
  // reported for tensor cores are tried last, and run without tensor cores.
  Result<Done> Choose(bool allows_tensor_cores, const std::optional<int64_t>& limit) {
    SetMath(allows_tensor_cores ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH);
    constexpr int kMaxAlgorithms = 16;
    typename Pass::Performance found[kMaxAlgorithms];
    int count = 0;
    const cudnnStatus_t status = Pass::Algorithms(*this, kMaxAlgorithms, &count, found);
    if (status != CUDNN_STATUS_SUCCESS) return Refuse(api_.get_error_string(status));
    std::stable_partition(found, found + count, [&](const typename Pass::Performance& entry) {
      return allows_tensor_cores || entry.mathType == CUDNN_FMA_MATH;
    });
    std::optional<Choice> smallest;
    for (int i = 0; i < count; ++i) {
      if (found[i].status != CUDNN_STATUS_SUCCESS) continue;
      if (found[i].determinism != CUDNN_DETERMINISTIC) continue;
      Choice choice{found[i].algo, allows_tensor_cores ? found[i].mathType : CUDNN_FMA_MATH};
      SetMath(choice.math);
      if (Pass::Workspace(*this, choice.algorithm, &choice.bytes) != CUDNN_STATUS_SUCCESS) continue;
      if (choice.bytes <= static_cast<size_t>(limit.value_or(kUsualLimit))) return Take(choice);
      if (!smallest || choice.bytes < smallest->bytes) smallest = choice;
    }
    if (!smallest) return Refuse("it has no deterministic algorithm for this shape");
    if (!limit) return Take(*smallest);
    return Refuse(
        fmt::format("it takes at least {} bytes of workspace, which is more than the limit; "
                    "raise the workspace limit to {}",
                    smallest->bytes, smallest->bytes));
  }

  int64_t workspace() const override { return workspace_; }

  void Run(void* x, void* w, void* y, void* workspace) override {
    const float one = 1;
    const float zero = 0;
    Check(Pass::Run(*this, &one, &zero, x, w, y, workspace), Pass::kName);
  }

 private:
  friend Pass;

  struct Choice {
    typename Pass::Algorithm algorithm;
    cudnnMathType_t math;
    size_t bytes = 0;
  };

  Done Take(const Choice& choice) {
    SetMath(choice.math);
    algorithm_ = choice.algorithm;
    workspace_ = static_cast<int64_t>(choice.bytes);
    return Done{};
  }

  static Error Refuse(std::string_view why) {
    return MakeError(ErrorCode::kUnsupported, fmt::format("{}: {}", Pass::kName, why));
  }

  void SetMath(cudnnMathType_t math) {
    Check(api_.set_math_type(convolution_.get(), math), "cudnnSetConvolutionMathType");
  }

  void Check(cudnnStatus_t status, const char* call) const { CheckStatus(api_, status, call); }

  void SetTensor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                 const std::vector<int64_t>& dims) {
    std::vector<int> strides(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) {
      strides[i - 1] = strides[i] * static_cast<int>(dims[i]);
    }
    const std::vector<int> narrow = Narrow(dims);
    Check(api_.set_tensor(tensor, type, static_cast<int>(narrow.size()), narrow.data(),
                          strides.data()),
          "cudnnSetTensorNdDescriptor");
  }

  const CudnnApi& api_;
  cudnnHandle_t handle_;
  Descriptor<cudnnTensorDescriptor_t> x_, y_;
  Descriptor<cudnnFilterDescriptor_t> w_;
  Descriptor<cudnnConvolutionDescriptor_t> convolution_;
  typename Pass::Algorithm algorithm_{};
  int64_t workspace_ = 0;
};

struct ForwardPass {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Performance = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr const char* kName = "cudnnConvolutionForward";

  template <typename C>
  static cudnnStatus_t Algorithms(const C& c, int max_count, int* count, Performance* found) {
    return c.api_.forward_algorithms(c.handle_, c.x_.get(), c.w_.get(), c.convolution_.get(),
                                     c.y_.get(), max_count, count, found);
  }
  template <typename C>
  static cudnnStatus_t Workspace(const C& c, Algorithm algorithm, size_t* bytes) {
    return c.api_.forward_workspace(c.handle_, c.x_.get(), c.w_.get(), c.convolution_.get(),
                                    c.y_.get(), algorithm, bytes);
  }
  template <typename C>
  static cudnnStatus_t Run(const C& c, const float* one, const float* zero, void* x, void* w,
                           void* y, void* workspace) {
    return c.api_.forward(c.handle_, one, c.x_.get(), x, c.w_.get(), w, c.convolution_.get(),
                          c.algorithm_, workspace, static_cast<size_t>(c.workspace_), zero,
                          c.y_.get(), y);
  }
};

struct DataPass {
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr const char* kName = "cudnnConvolutionBackwardData";

  template <typename C>
  static cudnnStatus_t Algorithms(const C& c, int max_count, int* count, Performance* found) {
    return c.api_.data_algorithms(c.handle_, c.w_.get(), c.y_.get(), c.convolution_.get(),
                                  c.x_.get(), max_count, count, found);
  }
  template <typename C>
  static cudnnStatus_t Workspace(const C& c, Algorithm algorithm, size_t* bytes) {
    return c.api_.data_workspace(c.handle_, c.w_.get(), c.y_.get(), c.convolution_.get(),
                                 c.x_.get(), algorithm, bytes);
  }
  template <typename C>
  static cudnnStatus_t Run(const C& c, const float* one, const float* zero, void* x, void* w,
                           void* y, void* workspace) {
    return c.api_.data(c.handle_, one, c.w_.get(), w, c.y_.get(), y, c.convolution_.get(),
                       c.algorithm_, workspace, static_cast<size_t>(c.workspace_), zero, c.x_.get(),
                       x);
  }
};

struct WeightsPass {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr const char* kName = "cudnnConvolutionBackwardFilter";

  template <typename C>
  static cudnnStatus_t Algorithms(const C& c, int max_count, int* count, Performance* found) {
    return c.api_.weight_algorithms(c.handle_, c.x_.get(), c.y_.get(), c.convolution_.get(),
                                    c.w_.get(), max_count, count, found);
  }
  template <typename C>
  static cudnnStatus_t Workspace(const C& c, Algorithm algorithm, size_t* bytes) {
    return c.api_.weight_workspace(c.handle_, c.x_.get(), c.y_.get(), c.convolution_.get(),
                                   c.w_.get(), algorithm, bytes);
  }
  template <typename C>
  static cudnnStatus_t Run(const C& c, const float* one, const float* zero, void* x, void* w,
                           void* y, void* workspace) {
    return c.api_.weights(c.handle_, one, c.x_.get(), x, c.y_.get(), y, c.convolution_.get(),
                          c.algorithm_, workspace, static_cast<size_t>(c.workspace_), zero,
                          c.w_.get(), w);
  }
};

template <typename Pass>
Result<std::unique_ptr<Convolution>> PreparePass(const CudnnApi& api, cudnnHandle_t handle,
                                                 const ConvolutionShape& shape,
                                                 const DeviceOptions& options) {
  auto convolution = std::make_unique<CudnnConvolution<Pass>>(api, handle, shape);
  const bool is_half = shape.type == ElementType::kBFloat16;
  CKPLAN_RETURN_IF_ERROR(
      convolution->Choose(is_half || options.allow_tf32, options.workspace_limit));
  return Result<std::unique_ptr<Convolution>>(std::move(convolution));
}

}  // namespace

Result<CudnnApi> CudnnApi::Load(const std::vector<std::string>& folders) {
  CKPLAN_ASSIGN_OR_RETURN(const SharedLibrary library,
                          SharedLibrary::Open("cuDNN 9", {"libcudnn.so.9"}, folders));
  CudnnApi api;
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnCreate", api.create));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnDestroy", api.destroy));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnSetStream", api.set_stream));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnGetVersion", api.get_version));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnGetErrorString", api.get_error_string));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnCreateTensorDescriptor", api.create_tensor));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnDestroyTensorDescriptor", api.destroy_tensor));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnSetTensorNdDescriptor", api.set_tensor));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnCreateFilterDescriptor", api.create_filter));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnDestroyFilterDescriptor", api.destroy_filter));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnSetFilterNdDescriptor", api.set_filter));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnCreateConvolutionDescriptor", api.create_convolution));
  CKPLAN_RETURN_IF_ERROR(
      library.Find("cudnnDestroyConvolutionDescriptor", api.destroy_convolution));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnSetConvolutionNdDescriptor", api.set_convolution));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnSetConvolutionGroupCount", api.set_groups));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnSetConvolutionMathType", api.set_math_type));
  CKPLAN_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionForwardAlgorithm_v7", api.forward_algorithms));
  CKPLAN_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionForwardWorkspaceSize", api.forward_workspace));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnConvolutionForward", api.forward));
  CKPLAN_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionBackwardDataAlgorithm_v7", api.data_algorithms));
  CKPLAN_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionBackwardDataWorkspaceSize", api.data_workspace));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnConvolutionBackwardData", api.data));
  CKPLAN_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionBackwardFilterAlgorithm_v7", api.weight_algorithms));
  CKPLAN_RETURN_IF_ERROR(
      library.Find("cudnnGetConvolutionBackwardFilterWorkspaceSize", api.weight_workspace));
  CKPLAN_RETURN_IF_ERROR(library.Find("cudnnConvolutionBackwardFilter", api.weights));
  return api;
}

Result<std::unique_ptr<CudnnConvolutions>> CudnnConvolutions::Create(const CudnnApi& api,
                                                                     const DeviceOptions& options,
                                                                     cudaStream_t stream) {
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = api.create(&handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("cuDNN cannot start: {}", api.get_error_string(status)));
  }
  CheckStatus(api, api.set_stream(handle, stream), "cudnnSetStream");
  return std::unique_ptr<CudnnConvolutions>(new CudnnConvolutions(api, options, handle));
}

CudnnConvolutions::CudnnConvolutions(const CudnnApi& api, const DeviceOptions& options,
                                     cudnnHandle_t handle)
    : api_(api), options_(options), handle_(handle) {}

CudnnConvolutions::~CudnnConvolutions() { api_.destroy(handle_); }

int64_t CudnnConvolutions::version() const { return static_cast<int64_t>(api_.get_version()); }

Result<std::unique_ptr<Convolution>> CudnnConvolutions::Prepare(const ConvolutionShape& shape,
                                                                ConvPass pass) {
  const bool fits = Fits(Joined(shape.batch, shape.groups * shape.in_channels, shape.in)) &&
                    Fits(Joined(shape.batch, shape.groups * shape.out_channels, shape.out));
  if (!fits) {
    return MakeError(ErrorCode::kUnsupported,
                     "cuDNN takes tensors of at least one element and below 2^31; take a smaller "
                     "batch");
  }
  switch (pass) {
    case ConvPass::kForward:
      return PreparePass<ForwardPass>(api_, handle_, shape, options_);
    case ConvPass::kBackwardData:
      return PreparePass<DataPass>(api_, handle_, shape, options_);
    case ConvPass::kBackwardWeights:
      return PreparePass<WeightsPass>(api_, handle_, shape, options_);
  }
  return PreparePass<ForwardPass>(api_, handle_, shape, options_);
}

}  // namespace ckplan::cuda
