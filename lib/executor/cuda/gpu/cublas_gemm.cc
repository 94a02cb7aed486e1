#include "lib/executor/cuda/gpu/cublas_gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/executor/cuda/cuda_check.h"
#include "lib/executor/cuda/gpu/shared_library.h"

namespace ckplan::cuda {

namespace {

// cuBLAS's own default on Hopper. A larger workspace makes nothing faster.
constexpr int64_t kDefaultWorkspace = int64_t{32} << 20;

cudaDataType TypeOf(ElementType type) {
  return type == ElementType::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasOperation_t OperationOf(const MatrixView& view) {
  return view.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

Result<CublasApi> CublasApi::Load(const std::vector<std::string>& folders) {
  // cuBLAS depends on cuBLASLt, and only finds it if the loader has already loaded it.
  CKPLAN_RETURN_IF_ERROR(
      SharedLibrary::Open("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, folders));
  CKPLAN_ASSIGN_OR_RETURN(
      const SharedLibrary library,
      SharedLibrary::Open("cuBLAS", {"libcublas.so.13", "libcublas.so.12"}, folders));
  CublasApi api;
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasCreate_v2", api.create));
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasDestroy_v2", api.destroy));
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasSetStream_v2", api.set_stream));
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasSetMathMode", api.set_math_mode));
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasSetWorkspace_v2", api.set_workspace));
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasGetVersion_v2", api.get_version));
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasGetStatusString", api.get_status_string));
  CKPLAN_RETURN_IF_ERROR(library.Find("cublasGemmStridedBatchedEx_64", api.gemm));
  return api;
}

Result<std::unique_ptr<CublasGemm>> CublasGemm::Create(const CublasApi& api,
                                                       const DeviceOptions& options,
                                                       cudaStream_t stream) {
  cublasHandle_t handle = nullptr;
  const cublasStatus_t status = api.create(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("cuBLAS cannot start: {}", api.get_status_string(status)));
  }
  std::unique_ptr<CublasGemm> gemm(new CublasGemm(api, options, handle));
  gemm->Check(api.set_stream(handle, stream), "cublasSetStream");
  // Keeps sums of bfloat16 products in float32, even if cuBLAS splits the sums.
  gemm->Check(api.set_math_mode(handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
              "cublasSetMathMode");
  return gemm;
}

int64_t CublasGemm::WorkspaceFor(const DeviceOptions& options) {
  return std::min(kDefaultWorkspace, options.workspace_limit.value_or(kDefaultWorkspace));
}

CublasGemm::CublasGemm(const CublasApi& api, const DeviceOptions& options, cublasHandle_t handle)
    : api_(api),
      allow_tf32_(options.allow_tf32_products),
      workspace_(WorkspaceFor(options)),
      handle_(handle) {}

void CublasGemm::Check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) FailOutOfMemory(call);
  FailCheck(__FILE__, __LINE__, call, api_.get_status_string(status));
}

CublasGemm::~CublasGemm() { api_.destroy(handle_); }

int CublasGemm::version() const {
  int version = 0;
  Check(api_.get_version(handle_, &version), "cublasGetVersion");
  return version;
}

// cuBLAS uses column-major matrices, so each row-major matrix appears transposed: C' = B' A'.
void CublasGemm::Run(const GemmShape& shape, const void* a, const void* b, void* c,
                     void* workspace) {
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return;
  const cublasComputeType_t compute = allow_tf32_ && shape.a.type == ElementType::kFloat32
                                          ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : CUBLAS_COMPUTE_32F;
  Check(api_.set_workspace(handle_, workspace, static_cast<size_t>(workspace_)),
        "cublasSetWorkspace");
  Check(api_.gemm(handle_, OperationOf(shape.b), OperationOf(shape.a), shape.n, shape.m, shape.k,
                  &shape.alpha, b, TypeOf(shape.b.type), shape.b.row_stride, shape.b.batch_stride,
                  a, TypeOf(shape.a.type), shape.a.row_stride, shape.a.batch_stride, &shape.beta, c,
                  TypeOf(shape.c.type), shape.c.row_stride, shape.c.batch_stride, shape.batch,
                  compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

}  // namespace ckplan::cuda
