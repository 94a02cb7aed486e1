// Products of matrices, alone or in batches: what Gemm, MatMul, Einsum, LSTM, GRU, Attention and
// convolutions with a 1x1 kernel are made of.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/cpu/dnnl_support.h"

namespace ckplan::cpu {

// How a matrix lies in memory: row-major as it is used, or transposed.
struct MatrixLayout {
  bool is_transposed = false;  // Its columns are the rows in memory.
  int64_t row_stride = 0;      // Elements from one row in memory to the next; 0: no gap.
  bool is_shared = false;      // The whole batch reads this one matrix.
};

// C = alpha A B, or C += alpha A B; A is m x k, B is k x n, for each of `batch`, which lie one
// after the other.
struct ProductShape {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;
  MatrixLayout a, b, c;
  float alpha = 1;
  bool adds = false;
  bool packs_b = false;  // Run takes B as Pack left it, for one B in many products; batch is 1.
};

class MatMulKernel {
 public:
  explicit MatMulKernel(const ProductShape& shape);  // Throws what oneDNN throws.

  int64_t workspace() const { return plan_.total(); }
  void Run(const float* a, const float* b, float* c, void* workspace) const;

  int64_t packed_bytes() const { return static_cast<int64_t>(b_.get_size()); }
  void Pack(const float* b, float* packed, void* workspace) const;

 private:
  int64_t columns_;
  int64_t panel_;      // Columns of B that are computed at once.
  bool packs_panels_;  // B is brought into oneDNN's layout, a panel at a time.
  DnnlDevice device_;
  dnnl::memory::desc a_, b_, c_;
  DnnlPrimitive primitive_;
  LayoutChange packing_;
  WorkspacePlan plan_;
  int64_t packed_ = 0, scratch_ = 0;  // Offsets in the workspace.
};

}  // namespace ckplan::cpu
