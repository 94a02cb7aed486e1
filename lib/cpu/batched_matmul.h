// Products of two lists of matrices, each pair by its place in the lists: what broadcasting leaves
// of a batched matrix product, and of its gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/cpu/matmul_kernel.h"

namespace ckplan::cpu {

// c[i] of C is the sum of a[i] of A times b[i] of B over all i with that c[i]. The numbers count
// matrices, which lie one after the other.
struct MatrixTriples {
  std::vector<int64_t> a, b, c;
};
// Longer lists would take more memory than the matrices are worth.
inline constexpr int64_t kMaxMatrices = 1 << 24;

class BatchedMatMul {
 public:
  // shape.batch and the is_shared of its layouts are found from `triples`. shape.adds: for
  // `triples` that name each matrix of C once.
  // Throws what oneDNN throws.
  BatchedMatMul(ProductShape shape, MatrixTriples triples);

  int64_t workspace() const { return product_->workspace(); }
  void Run(const float* a, const float* b, float* c, void* workspace) const;

 private:
  MatrixTriples triples_;
  int64_t a_size_, b_size_, c_size_;  // Elements of one matrix.
  int64_t c_count_ = 0;               // Matrices of C.
  bool is_one_call_ = false;
  bool adds_ = false;
  std::unique_ptr<MatMulKernel> product_;
};

}  // namespace ckplan::cpu
