// Matrix products with cuBLAS, whose functions are loaded at run time.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/cuda/device.h"

namespace ckplan::cuda {

// The cuBLAS functions in use. Tests replace them.
struct CublasApi {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasGetVersion_v2) get_version = nullptr;
  decltype(&cublasGetStatusString) get_status_string = nullptr;
  decltype(&cublasGemmStridedBatchedEx_64) gemm = nullptr;

  // Fails with kUnsupported if cuBLAS is missing or too old.
  static Result<CublasApi> Load(const std::vector<std::string>& folders);
};

class CublasGemm {
 public:
  // Fails with kUnsupported if the library cannot start, for example because of too little memory.
  static Result<std::unique_ptr<CublasGemm>> Create(const CublasApi& api,
                                                    const DeviceOptions& options,
                                                    cudaStream_t stream);
  // Returns the workspace of a product, which is our choice: cuBLAS works with any size.
  static int64_t WorkspaceFor(const DeviceOptions& options);
  ~CublasGemm();
  CublasGemm(const CublasGemm&) = delete;
  CublasGemm& operator=(const CublasGemm&) = delete;

  int version() const;  // For example 130002 for 13.0.2.
  int64_t workspace() const { return workspace_; }
  // See Libraries::Gemm. `workspace` has workspace() bytes.
  void Run(const GemmShape& shape, const void* a, const void* b, void* c, void* workspace);

 private:
  CublasGemm(const CublasApi& api, const DeviceOptions& options, cublasHandle_t handle);

  void Check(cublasStatus_t status, const char* call) const;

  CublasApi api_;
  bool allow_tf32_;
  int64_t workspace_;
  cublasHandle_t handle_;
};

}  // namespace ckplan::cuda
