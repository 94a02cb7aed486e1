// Products of pairs of matrices taken from two lists. A batched matrix product with broadcasting,
// and its gradients, are reduced to this form.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/executor/cpu/matmul_kernel.h"

namespace ckplan::cpu {

// Matrix c[i] of C is the sum of the products of matrix a[i] of A and matrix b[i] of B over all i
// with the same c[i]. The indices count matrices, which are stored contiguously.
struct MatrixTriples {
  std::vector<int64_t> a, b, c;
};
// Longer lists would take more memory than the matrices themselves.
inline constexpr int64_t kMaxMatrices = 1 << 24;

class BatchedMatMul {
 public:
  // Derives shape.batch and the is_shared flags of its layouts from `triples`. Supports shape.adds
  // only if `triples` names each matrix of C once. Throws the exceptions of oneDNN.
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
