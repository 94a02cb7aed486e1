// Matrix products, single or batched: the basis of Gemm, MatMul, Einsum, LSTM, GRU, Attention and
// 1x1 convolutions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/executor/cpu/dnnl_support.h"

namespace ckplan::cpu {

// A matrix's layout in memory: row-major, or transposed.
struct MatrixLayout {
  bool is_transposed = false;  // The rows in memory are the matrix's columns.
  int64_t row_stride = 0;      // Elements between starts of rows in memory; 0: rows are dense.
  bool is_shared = false;      // One matrix for the whole batch.
};

// C = alpha A B, or C += alpha A B; A is m x k, B is k x n. A batch has `batch` such products,
// whose matrices are contiguous.
struct ProductShape {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;
  MatrixLayout a, b, c;
  float alpha = 1;
  bool adds = false;
  bool packs_b =
      false;  // Run takes a B that Pack has packed, so that many products reuse it; batch is 1.
};

class MatMulKernel {
 public:
  explicit MatMulKernel(const ProductShape& shape);  // Throws the exceptions of oneDNN.

  int64_t workspace() const { return plan_.total(); }
  void Run(const float* a, const float* b, float* c, void* workspace) const;

  int64_t packed_bytes() const { return static_cast<int64_t>(b_.get_size()); }
  void Pack(const float* b, float* packed, void* workspace) const;

 private:
  int64_t columns_;
  int64_t panel_;      // Columns of B computed at once.
  bool packs_panels_;  // Copies B to oneDNN's layout, one panel at a time.
  DnnlDevice device_;
  dnnl::memory::desc a_, b_, c_;
  DnnlPrimitive primitive_;
  LayoutChange packing_;
  WorkspacePlan plan_;
  int64_t packed_ = 0, scratch_ = 0;  // Offsets in the workspace.
};

// Products of pairs of matrices taken from two lists. Batched matrix products with broadcasting,
// and their gradients, reduce to this form.

// Matrix c[i] of C is the sum of the products of matrix a[i] of A and matrix b[i] of B over all i
// with the same c[i]. Indices count matrices, which are contiguous.
struct MatrixTriples {
  std::vector<int64_t> a, b, c;
};
// Longer lists would take more memory than the matrices.
inline constexpr int64_t kMaxMatrices = 1 << 24;

class BatchedMatMul {
 public:
  // Derives shape.batch and the layouts' is_shared flags from `triples`. Supports shape.adds only
  // if `triples` names each matrix of C once. Throws oneDNN's exceptions.
  BatchedMatMul(ProductShape shape, MatrixTriples triples);

  int64_t workspace() const { return product_->workspace(); }
  void Run(const float* a, const float* b, float* c, void* workspace) const;

 private:
  MatrixTriples triples_;
  int64_t a_size_, b_size_, c_size_;  // Elements of one matrix.
  int64_t c_count_ = 0;               // Number of matrices in C.
  bool is_one_call_ = false;
  bool adds_ = false;
  std::unique_ptr<MatMulKernel> product_;
};

}  // namespace ckplan::cpu
