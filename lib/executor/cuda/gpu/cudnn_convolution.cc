#include "lib/executor/cuda/gpu/cudnn_convolution.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

namespace ckplan::cuda {

namespace {

// Returns whether a tensor has elements, and fewer than 2^31 of them.
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
                     "cuDNN takes tensors of at least one element and below 2^31; take a smaller "
                     "batch");
  }
  std::shared_ptr<const CudnnPlan>& plan = plans_[{shape, pass}];
  if (!plan) {
    CKPLAN_ASSIGN_OR_RETURN(plan, MakeCudnnPlan(api_, target(), shape, pass, options_));
  }
  return std::unique_ptr<Convolution>(std::make_unique<CudnnConvolution>(api_, handle_, plan));
}

}  // namespace ckplan::cuda
