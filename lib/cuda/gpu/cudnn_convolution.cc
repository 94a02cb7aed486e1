#include "lib/cuda/gpu/cudnn_convolution.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "lib/base/check.h"

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
    CKPLAN_CHECK(handle_ != nullptr, "a device that is only described runs nothing");
    const int64_t ids[] = {kIdOfX, kIdOfW, kIdOfY};
    void* const tensors[] = {x, w, y};
    CudnnDescriptor pack(api_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids)
        .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, tensors)
        .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    const Result<Done> packed = pack.Finalize();
    CKPLAN_CHECK(packed.ok(), packed.error().message);
    CheckCudnn(api_, api_.execute(handle_, plan_->plan.handle(), pack.handle()),
               "cudnnBackendExecute");
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
    const CudnnTarget target{handle_, properties_ ? &*properties_ : nullptr};
    CKPLAN_ASSIGN_OR_RETURN(plan, MakeCudnnPlan(api_, target, shape, pass, options_));
  }
  return std::unique_ptr<Convolution>(std::make_unique<CudnnConvolution>(api_, handle_, plan));
}

}  // namespace ckplan::cuda
