// An emulated cuBLAS, for the emulated CUDA runtime (emulated_runtime.h). The program loads it like
// cuBLAS. Products are simple loops that run as stream work. A call that breaks cuBLAS's rules ends
// the program: a handle without a stream, a workspace or operands outside allocations, a leading
// dimension that is too small, or batches that write the same matrix.
#include <cublas_v2.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {

namespace {

constexpr int kCublasVersion = 130000;
constexpr int kUsedByCublas = 0x5A;  // What a product leaves in its workspace.

struct EmulatedCublas {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

EmulatedObjects<EmulatedCublas>& CublasHandles() {
  static EmulatedObjects<EmulatedCublas> handles;
  return handles;
}

ElementType ElementOf(cudaDataType type) {
  CKPLAN_CHECK(type == CUDA_R_32F || type == CUDA_R_16BF, "matrices are float32 or bfloat16");
  return type == CUDA_R_16BF ? ElementType::kBFloat16 : ElementType::kFloat32;
}

int64_t BytesOf(ElementType type) { return type == ElementType::kBFloat16 ? 2 : 4; }

// A batch of column-major matrices.
struct Columns {
  void* data = nullptr;
  ElementType type = ElementType::kFloat32;
  int64_t rows = 0, columns = 0;  // As stored.
  int64_t leading = 0;            // Elements between starts of columns.
  int64_t stride = 0;             // Elements between matrices.

  void Check(int64_t batch) const {
    CKPLAN_CHECK(leading >= std::max<int64_t>(1, rows), "a leading dimension covers the rows");
    if (rows == 0 || columns == 0) return;
    CKPLAN_CHECK(stride >= 0, "the matrices of a batch have a non-negative stride");
    CheckEmulatedRange(data, Elements(batch) * BytesOf(type));
    CKPLAN_CHECK(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(BytesOf(type)) == 0,
                 "matrices are aligned to their elements");
  }
  // Returns the number of elements from the batch's first to its last.
  int64_t Elements(int64_t batch) const {
    return (batch - 1) * stride + (columns - 1) * leading + rows;
  }
  void* Matrix(int64_t index) const {
    return static_cast<char*>(data) + index * stride * BytesOf(type);
  }
};

std::vector<double> ReadMatrix(const Columns& matrix, int64_t index, bool transposes) {
  const FloatsIn from(matrix.Matrix(index), matrix.type);
  std::vector<double> values(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t column = 0; column < matrix.columns; ++column) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const int64_t to = transposes ? row * matrix.columns + column : column * matrix.rows + row;
      values[static_cast<size_t>(to)] = static_cast<double>(from[column * matrix.leading + row]);
    }
  }
  return values;
}

struct Product {
  Columns a, b, c;
  bool transposes_a = false, transposes_b = false;
  int64_t m = 0, n = 0, k = 0, batch = 0;
  float alpha = 1, beta = 0;
  bool is_inexact = false;  // A planted fault.

  void Check() const {
    CKPLAN_CHECK(m >= 0 && n >= 0 && k >= 0 && batch >= 0, "a product's sizes are not negative");
    CKPLAN_CHECK(a.type == b.type, "both factors of a product have the same type");
    CKPLAN_CHECK(c.type == a.type || c.type == ElementType::kFloat32,
                 "a product has its factors' type or float32");
    a.Check(batch);
    b.Check(batch);
    c.Check(batch);
    // The results of a batch follow each other, or are interleaved within the columns.
    const bool follow = c.stride >= (n - 1) * c.leading + m;
    const bool are_beside = c.stride >= m && (batch - 1) * c.stride + m <= c.leading;
    CKPLAN_CHECK(batch <= 1 || follow || are_beside, "the products of a batch don't overlap");
  }

  void Run() const {
    for (int64_t i = 0; i < batch; ++i) {
      const std::vector<double> as = ReadMatrix(a, i, !transposes_a);  // m rows of k.
      const std::vector<double> bs = ReadMatrix(b, i, transposes_b);   // n columns of k.
      const FloatsOut to(c.Matrix(i), c.type);
      for (int64_t column = 0; column < n; ++column) {
        for (int64_t row = 0; row < m; ++row) {
          double sum = 0;
          for (int64_t p = 0; p < k; ++p) {
            sum += as[static_cast<size_t>(row * k + p)] * bs[static_cast<size_t>(column * k + p)];
          }
          const int64_t at = column * c.leading + row;
          const float before = beta == 0 ? 0 : beta * to[at];
          to.Set(at, static_cast<float>(static_cast<double>(alpha) * sum) + before);
        }
      }
    }
    if (is_inexact && m * n * batch > 0) {
      const FloatsOut to(c.data, c.type);
      to.Set(0, to[0] * 1.01F + 1e-3F);
    }
  }
};

}  // namespace

}  // namespace ckplan::cuda

using ckplan::cuda::CheckEmulatedRange;
using ckplan::cuda::CheckEmulatedStream;
using ckplan::cuda::CountEmulatedCall;
using ckplan::cuda::CublasHandles;
using ckplan::cuda::EmulatedCublas;
using ckplan::cuda::IsPlanted;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  CountEmulatedCall(__func__);
  *handle = CublasHandles().Add<cublasHandle_t>();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  CountEmulatedCall(__func__);
  CublasHandles().Remove(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version) {
  (void)CublasHandles().Find(handle);
  *version = ckplan::cuda::kCublasVersion;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  CountEmulatedCall(__func__);
  CheckEmulatedStream(stream);
  EmulatedCublas& emulated = CublasHandles().Find(handle);
  emulated.stream = stream;
  emulated.workspace = nullptr;  // cuBLAS also forgets its workspace here.
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  CountEmulatedCall(__func__);
  CublasHandles().Find(handle).math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  CountEmulatedCall(__func__);
  if (IsPlanted("the workspace of a product is not aligned")) {
    workspace = static_cast<char*>(workspace) + 16;
  }
  CKPLAN_CHECK(reinterpret_cast<uintptr_t>(workspace) % 256 == 0,
               "a workspace is aligned to 256 bytes");
  CheckEmulatedRange(workspace, static_cast<int64_t>(bytes));
  EmulatedCublas& emulated = CublasHandles().Find(handle);
  emulated.workspace = workspace;
  emulated.workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "a failure of the emulated cuBLAS";
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,
    int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
    long long a_stride, const void* b, cudaDataType b_type, int64_t ldb, long long b_stride,
    const void* beta, void* c, cudaDataType c_type, int64_t ldc, long long c_stride, int64_t batch,
    cublasComputeType_t compute, cublasGemmAlgo_t) {
  CountEmulatedCall(__func__);
  const EmulatedCublas& emulated = CublasHandles().Find(handle);
  CKPLAN_CHECK(emulated.math == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION,
               "sums of bfloat16 are not rounded before the end");
  CKPLAN_CHECK(compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32,
               "sums are computed in float32");
  CKPLAN_CHECK(emulated.workspace != nullptr, "a product has a workspace");
  if (IsPlanted("a leading dimension is too small")) --ldb;
  ckplan::cuda::Product product;
  product.transposes_a = op_a == CUBLAS_OP_T;
  product.transposes_b = op_b == CUBLAS_OP_T;
  product.m = m;
  product.n = n;
  product.k = k;
  product.batch = batch;
  product.alpha = *static_cast<const float*>(alpha);
  product.beta = *static_cast<const float*>(beta);
  product.a = {const_cast<void*>(a),
               ckplan::cuda::ElementOf(a_type),
               product.transposes_a ? k : m,
               product.transposes_a ? m : k,
               lda,
               a_stride};
  product.b = {const_cast<void*>(b),
               ckplan::cuda::ElementOf(b_type),
               product.transposes_b ? n : k,
               product.transposes_b ? k : n,
               ldb,
               b_stride};
  product.c = {c, ckplan::cuda::ElementOf(c_type), m, n, ldc, c_stride};
  product.Check();
  product.is_inexact =
      IsPlanted("a product is not the same twice") &&
      ckplan::cuda::CallsOfEmulatedRuntime().at("cublasGemmStridedBatchedEx_64") % 7 == 0;
  void* const workspace = emulated.workspace;
  const size_t bytes = emulated.workspace_bytes;
  ckplan::cuda::EnqueueEmulatedWork(emulated.stream, [product, workspace, bytes] {
    std::memset(workspace, ckplan::cuda::kUsedByCublas, bytes);
    product.Run();
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
