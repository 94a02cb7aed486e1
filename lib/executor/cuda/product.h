// Matrix products of any two float types, in batches with broadcasting: the basis of MatMul, Gemm,
// Einsum and their gradients.
#pragma once

#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

// A tensor of matrices. Its rows may have gaps between them.
struct MatrixTensor {
  ElementType type = ElementType::kFloat32;
  bool is_transposed = false;  // The rows in memory are the matrix's columns.
  int64_t row_stride = 0;      // Elements between starts of rows in memory.
  int64_t elements = 0;        // Number of elements of the whole tensor.
};

// C = alpha A B for each index of `batch`, or C += alpha A B. A is m x k, B is k x n.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  MatrixTensor a, b, c;  // c is not transposed.
  // The strides of A, B and C between matrices. Products are summed along axes where C's stride is
  // 0.
  Layout batch = Collapse({}, {{}, {}, {}});
  float alpha = 1;
  bool adds = false;  // Only for a batch without sums.
};

// A factor's gradient is a product of C's gradient and the other factor.
struct GradientProduct {
  MatrixProduct product;
  bool has_gradient_left = false;  // Otherwise the other factor is on the left.
};
// `factor` is 0 for A, 1 for B.
GradientProduct GradientOf(const MatrixProduct& forward, size_t factor);

class BatchedProduct {
 public:
  BatchedProduct(Device& device, MatrixProduct product);

  int64_t workspace() const { return plan_.total(); }
  void Run(const void* a, const void* b, void* c, void* workspace) const;

 private:
  void RunAll(const void* a, const void* b, void* c, void* workspace) const;

  Device& device_;
  GemmShape shape_;  // Shape of one call.
  Layout outer_;     // Axes that one call doesn't cover, summed axes last.
  size_t first_sum_ = 0;
  WorkspacePlan plan_;
  Conversion a_, b_;
  Conversion c_;  // Sums of several products are computed in float32.
  int64_t scratch_ = 0;
};

}  // namespace ckplan::cuda
