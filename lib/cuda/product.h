// Products of matrices of any two types of floats, in batches that are broadcast: what MatMul, Gemm
// and Einsum are, and their gradients.
#pragma once

#include "lib/cuda/convert.h"
#include "lib/cuda/device.h"
#include "lib/cuda/workspace.h"
#include "lib/ops/layout.h"

namespace ckplan::cuda {

// A tensor that holds matrices. Its rows may be farther apart than they are long.
struct MatrixTensor {
  ElementType type = ElementType::kFloat32;
  bool is_transposed = false;  // The rows in memory are the columns of the matrix.
  int64_t row_stride = 0;      // Elements from one row in memory to the next.
  int64_t elements = 0;        // Of the whole tensor.
};

// C = alpha A B for each index of `batch`, or C += alpha A B. A is m x k, B is k x n.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  MatrixTensor a, b, c;  // c is not transposed.
  // By operand (A, B, C) the elements from one matrix to the next. Along the axes on which that is
  // 0 for C, its products are summed.
  Layout batch = Collapse({}, {{}, {}, {}});
  float alpha = 1;
  bool adds = false;  // For a batch without sums.
};

// The gradient of a factor is a product of the arriving gradient and the other factor.
struct GradientProduct {
  MatrixProduct product;
  bool has_gradient_left = false;  // Else the other factor is the left one.
};
// `factor`: 0 for A, 1 for B.
GradientProduct GradientOf(const MatrixProduct& forward, size_t factor);

class BatchedProduct {
 public:
  BatchedProduct(Device& device, MatrixProduct product);

  int64_t workspace() const { return plan_.total(); }
  void Run(const void* a, const void* b, void* c, void* workspace) const;

 private:
  void RunAll(const void* a, const void* b, void* c, void* workspace) const;

  Device& device_;
  GemmShape shape_;  // Of one call.
  Layout outer_;     // What one call does not cover, with the axes that are summed over last.
  size_t first_sum_ = 0;
  WorkspacePlan plan_;
  Conversion a_, b_;
  Conversion c_;  // The sum of many products is made in float32.
  int64_t scratch_ = 0;
};

}  // namespace ckplan::cuda
