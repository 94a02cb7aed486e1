#include "lib/executor/cuda/gpu/cudnn_convolution.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

namespace ckplan::cuda {

namespace {

using Attribute = cudnnBackendAttributeName_t;

// The names of a pass's operation and its attributes.
struct PassNames {
  const char* what;
  cudnnBackendDescriptorType_t operation;
  Attribute alpha, beta, convolution, x, w, y;
};

PassNames NamesOf(ConvPass pass) {
  switch (pass) {
    case ConvPass::kForward:
      break;
    case ConvPass::kBackwardData:
      return {"the gradient of a convolution's input",
              CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvPass::kBackwardWeights:
      return {"the gradient of a convolution's weights",
              CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  }
  return {"a convolution",
          CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
}

std::vector<int64_t> Joined(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  std::vector<int64_t> dims{first, second};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims, bool is_channels_last) {
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = is_channels_last ? dims[1] : 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (is_channels_last && i == 1) continue;
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

Result<CudnnDescriptor> DescribeTensor(const CudnnApi& api, int64_t id, cudnnDataType_t type,
                                       const std::vector<int64_t>& dims, bool is_channels_last) {
  CudnnDescriptor tensor(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, StridesOf(dims, is_channels_last))
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
  CKPLAN_RETURN_IF_ERROR(tensor.Finalize());
  return tensor;
}

Result<CudnnDescriptor> DescribeConvolution(const CudnnApi& api, const ConvolutionShape& shape) {
  CudnnDescriptor convolution(api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(shape.pads.size()))
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.pads)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.pads)
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.strides)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilations);
  CKPLAN_RETURN_IF_ERROR(convolution.Finalize());
  return convolution;
}

// Returns the operation. cuDNN derives the number of groups from the channels of x and w.
Result<CudnnDescriptor> DescribeOperation(const CudnnApi& api, const ConvolutionShape& shape,
                                          ConvPass pass) {
  const PassNames names = NamesOf(pass);
  const bool is_last = shape.is_channels_last;
  const cudnnDataType_t type =
      shape.type == ElementType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  CKPLAN_ASSIGN_OR_RETURN(
      const CudnnDescriptor x,
      DescribeTensor(api, kIdOfX, type,
                     Joined(shape.batch, shape.groups * shape.in_channels, shape.in), is_last));
  CKPLAN_ASSIGN_OR_RETURN(
      const CudnnDescriptor w,
      DescribeTensor(api, kIdOfW, type,
                     Joined(shape.groups * shape.out_channels, shape.in_channels, shape.kernel),
                     is_last));
  CKPLAN_ASSIGN_OR_RETURN(
      const CudnnDescriptor y,
      DescribeTensor(api, kIdOfY, type,
                     Joined(shape.batch, shape.groups * shape.out_channels, shape.out), is_last));
  CKPLAN_ASSIGN_OR_RETURN(const CudnnDescriptor convolution, DescribeConvolution(api, shape));
  CudnnDescriptor operation(api, names.operation);
  operation.Set(names.convolution, convolution)
      .Set(names.x, x)
      .Set(names.w, w)
      .Set(names.y, y)
      .Set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0)
      .Set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  CKPLAN_RETURN_IF_ERROR(operation.Finalize());
  return operation;
}

}  // namespace

Result<std::shared_ptr<const CudnnPlan>> MakeCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const ConvolutionShape& shape, ConvPass pass,
                                                       const DeviceOptions& options) {
  std::vector<CudnnDescriptor> operations;
  CKPLAN_ASSIGN_OR_RETURN(CudnnDescriptor operation, DescribeOperation(api, shape, pass));
  operations.push_back(std::move(operation));
  CKPLAN_ASSIGN_OR_RETURN(const CudnnDescriptor graph, MakeOperationGraph(api, target, operations));
  EngineRules rules;
  rules.what = NamesOf(pass).what;
  rules.allows_tensor_cores = options.allow_tf32 || shape.type == ElementType::kBFloat16;
  rules.workspace_limit = options.workspace_limit;
  rules.can_exceed_default = true;
  return FindCudnnPlan(api, target, graph, rules);
}

namespace {

// True if a tensor has between 1 and 2^31 - 1 elements.
bool Fits(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  int64_t elements = 1;
  const auto has_room_for = [&elements](int64_t dim) {
    if (dim <= 0 || dim > std::numeric_limits<int>::max() / elements) return false;
    elements *= dim;
    return true;
  };
  if (!has_room_for(first) || !has_room_for(second)) return false;
  for (const int64_t dim : rest) {
    if (!has_room_for(dim)) return false;
  }
  return true;
}

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(const CudnnApi& api, cudnnHandle_t handle, std::shared_ptr<const CudnnPlan> plan)
      : api_(api), handle_(handle), plan_(std::move(plan)) {}

  const EngineChoice& choice() const override { return plan_->choice; }

  void Run(void* x, void* w, void* y, void* workspace) override {
    ExecuteCudnnPlan(api_, handle_, *plan_, {kIdOfX, kIdOfW, kIdOfY}, {x, w, y}, workspace);
  }

 private:
  const CudnnApi& api_;
  cudnnHandle_t handle_;
  std::shared_ptr<const CudnnPlan> plan_;
};

}  // namespace

Result<std::unique_ptr<CudnnConvolutions>> CudnnConvolutions::Create(const CudnnApi& api,
                                                                     const DeviceOptions& options,
                                                                     cudaStream_t stream) {
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = api.create(&handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("cuDNN cannot start: {}", api.get_error_string(status)));
  }
  CheckCudnn(api, api.set_stream(handle, stream), "cudnnSetStream");
  return std::unique_ptr<CudnnConvolutions>(new CudnnConvolutions(api, options, handle));
}

Result<std::unique_ptr<CudnnConvolutions>> CudnnConvolutions::Describe(
    const CudnnApi& api, const DeviceOptions& options, const std::string& properties_json) {
  std::unique_ptr<CudnnConvolutions> convolutions(new CudnnConvolutions(api, options, nullptr));
  CKPLAN_ASSIGN_OR_RETURN(convolutions->properties_,
                          DescribeDevice(convolutions->api_, properties_json));
  return convolutions;
}

CudnnConvolutions::CudnnConvolutions(const CudnnApi& api, const DeviceOptions& options,
                                     cudnnHandle_t handle)
    : api_(api), options_(options), handle_(handle) {}

CudnnConvolutions::~CudnnConvolutions() {
  plans_.clear();
  if (handle_ != nullptr) api_.destroy(handle_);
}

Result<std::unique_ptr<Convolution>> CudnnConvolutions::Prepare(const ConvolutionShape& shape,
                                                                ConvPass pass) {
  if (!Fits(shape.batch, shape.groups * shape.in_channels, shape.in) ||
      !Fits(shape.batch, shape.groups * shape.out_channels, shape.out)) {
    return MakeError(ErrorCode::kUnsupported,
                     "cuDNN needs tensors with 1 to 2^31 - 1 elements; use a smaller batch");
  }
  std::shared_ptr<const CudnnPlan>& plan = plans_[{shape, pass}];
  if (!plan) {
    CKPLAN_ASSIGN_OR_RETURN(plan, MakeCudnnPlan(api_, target(), shape, pass, options_));
  }
  return std::unique_ptr<Convolution>(std::make_unique<CudnnConvolution>(api_, handle_, plan));
}

}  // namespace ckplan::cuda
