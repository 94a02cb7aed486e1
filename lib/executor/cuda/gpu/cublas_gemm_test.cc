// Checks the calls of cuBLAS with a replacement that follows its manual: matrices are column-major.
#include "lib/executor/cuda/gpu/cublas_gemm.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/base/check.h"

namespace ckplan::cuda {
namespace {

// The arguments of the last call, except the operands.
struct Seen {
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  cublasComputeType_t compute{};
  cudaDataType a{}, b{}, c{};
} seen;

cublasStatus_t Create(cublasHandle_t*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t Destroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t SetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t SetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t SetWorkspace(cublasHandle_t, void* workspace, size_t bytes) {
  seen.workspace = workspace;
  seen.workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

// Computes C = alpha op(A) op(B) + beta C for float32 matrices stored by columns.
cublasStatus_t Multiply(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m,
                        int64_t n, int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                        int64_t lda, long long a_stride, const void* b, cudaDataType b_type,
                        int64_t ldb, long long b_stride, const void* beta, void* c,
                        cudaDataType c_type, int64_t ldc, long long c_stride, int64_t batch,
                        cublasComputeType_t compute, cublasGemmAlgo_t) {
  seen.compute = compute;
  seen.a = a_type;
  seen.b = b_type;
  seen.c = c_type;
  if (a_type != CUDA_R_32F) return CUBLAS_STATUS_SUCCESS;  // Only the arguments are recorded.
  for (int64_t i = 0; i < batch; ++i) {
    const float* as = static_cast<const float*>(a) + i * a_stride;
    const float* bs = static_cast<const float*>(b) + i * b_stride;
    float* cs = static_cast<float*>(c) + i * c_stride;
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += (op_a == CUBLAS_OP_N ? as[row + p * lda] : as[p + row * lda]) *
                 (op_b == CUBLAS_OP_N ? bs[p + column * ldb] : bs[column + p * ldb]);
        }
        float& to = cs[row + column * ldc];
        const float before = *static_cast<const float*>(beta) == 0 ? 0 : to;
        to = *static_cast<const float*>(alpha) * sum + *static_cast<const float*>(beta) * before;
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

CublasApi FakeApi() {
  CublasApi api;
  api.create = Create;
  api.destroy = Destroy;
  api.set_stream = SetStream;
  api.set_math_mode = SetMathMode;
  api.set_workspace = SetWorkspace;
  api.gemm = Multiply;
  return api;
}

// Returns small integers, so that sums are exact in any order.
std::vector<float> Numbers(int64_t count, int64_t factor) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i * factor % 11 - 5));
  return numbers;
}

float At(const std::vector<float>& data, const MatrixView& view, int64_t batch, int64_t row,
         int64_t column) {
  const int64_t in_matrix =
      view.is_transposed ? column * view.row_stride + row : row * view.row_stride + column;
  return data[static_cast<size_t>(batch * view.batch_stride + in_matrix)];
}

TEST_CASE("cublas: row-major products of every layout, batched, shared and strided") {
  constexpr int64_t kM = 3, kN = 4, kK = 5, kBatch = 2;
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const bool b_shared : {false, true}) {
        for (const float beta : {0.0F, 2.0F}) {
          CAPTURE(a_transposed);
          CAPTURE(b_transposed);
          CAPTURE(b_shared);
          CAPTURE(beta);
          GemmShape shape{kBatch, kM, kN, kK};
          // The rows of each matrix have a gap of two elements in memory.
          shape.a = {ElementType::kFloat32, a_transposed, (a_transposed ? kM : kK) + 2, 50};
          shape.b = {ElementType::kFloat32, b_transposed, (b_transposed ? kK : kN) + 2,
                     b_shared ? 0 : 60};
          shape.c = {ElementType::kFloat32, false, kN + 2, 40};
          shape.alpha = 3;
          shape.beta = beta;
          const std::vector<float> a = Numbers(100, 7);
          const std::vector<float> b = Numbers(120, 5);
          std::vector<float> c = Numbers(80, 3);
          const std::vector<float> before = c;
          std::vector<float> expected = c;
          for (int64_t i = 0; i < kBatch; ++i) {
            for (int64_t row = 0; row < kM; ++row) {
              for (int64_t column = 0; column < kN; ++column) {
                float sum = 0;
                for (int64_t k = 0; k < kK; ++k) {
                  sum += At(a, shape.a, i, row, k) * At(b, shape.b, i, k, column);
                }
                const auto at = static_cast<size_t>(i * 40 + row * shape.c.row_stride + column);
                expected[at] = 3 * sum + beta * before[at];
              }
            }
          }
          const auto gemm = CublasGemm::Create(FakeApi(), {}, nullptr);
          (*gemm)->Run(shape, a.data(), b.data(), c.data(), nullptr);
          CHECK(c == expected);
        }
      }
    }
  }
}

TEST_CASE("cublas: types, precision and the caller's workspace") {
  GemmShape shape{1, 2, 2, 2};
  shape.a = {ElementType::kBFloat16, false, 2, 0};
  shape.b = {ElementType::kBFloat16, false, 2, 0};
  shape.c = {ElementType::kFloat32, false, 2, 0};
  char workspace[64];
  const auto plain = CublasGemm::Create(FakeApi(), {.workspace_limit = 64}, nullptr);
  (*plain)->Run(shape, nullptr, nullptr, nullptr, workspace);
  CHECK((*plain)->workspace() == 64);
  CHECK(seen.workspace == workspace);
  CHECK(seen.workspace_bytes == 64);
  CHECK(seen.a == CUDA_R_16BF);
  CHECK(seen.b == CUDA_R_16BF);
  CHECK(seen.c == CUDA_R_32F);
  CHECK(seen.compute == CUBLAS_COMPUTE_32F);

  const std::vector<float> ones(4, 1);
  std::vector<float> c(4, 0);
  shape.a.type = shape.b.type = ElementType::kFloat32;
  (*plain)->Run(shape, ones.data(), ones.data(), c.data(), workspace);
  CHECK(seen.compute == CUBLAS_COMPUTE_32F);
  const auto as_pytorch = CublasGemm::Create(FakeApi(), {.allow_tf32 = true}, nullptr);
  (*as_pytorch)->Run(shape, ones.data(), ones.data(), c.data(), workspace);
  CHECK(seen.compute == CUBLAS_COMPUTE_32F);
  const auto quick =
      CublasGemm::Create(FakeApi(), {.allow_tf32 = true, .allow_tf32_products = true}, nullptr);
  (*quick)->Run(shape, ones.data(), ones.data(), c.data(), workspace);
  CHECK(seen.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

TEST_CASE("cublas: a failure for lack of memory is not reported as a bug") {
  CublasApi api = FakeApi();
  api.gemm = [](cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t, int64_t, int64_t,
                const void*, const void*, cudaDataType, int64_t, long long, const void*,
                cudaDataType, int64_t, long long, const void*, void*, cudaDataType, int64_t,
                long long, int64_t, cublasComputeType_t,
                cublasGemmAlgo_t) { return CUBLAS_STATUS_ALLOC_FAILED; };
  const auto gemm = CublasGemm::Create(api, {}, nullptr);
  CHECK_THROWS_AS((*gemm)->Run({1, 2, 2, 2}, nullptr, nullptr, nullptr, nullptr), OutOfMemory);

  api.create = [](cublasHandle_t*) { return CUBLAS_STATUS_ALLOC_FAILED; };
  api.get_status_string = [](cublasStatus_t) { return "no memory"; };
  const auto none = CublasGemm::Create(api, {}, nullptr);
  REQUIRE(!none.ok());
  CHECK(none.error().code == ErrorCode::kUnsupported);
  CHECK(none.error().message == "cuBLAS cannot start: no memory");
}

}  // namespace
}  // namespace ckplan::cuda
