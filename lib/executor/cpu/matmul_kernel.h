// Products of matrices, single or in batches: the basis of Gemm, MatMul, Einsum, LSTM, GRU,
// Attention and 1x1 convolutions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/executor/cpu/dnnl_support.h"

namespace ckplan::cpu {

// How a matrix lies in memory: row-major, or transposed.
struct MatrixLayout {
  bool is_transposed = false;  // The rows in memory are the matrix's columns.
  int64_t row_stride = 0;      // Elements between starts of rows in memory; 0: rows are dense.
  bool is_shared = false;      // One matrix serves the whole batch.
};

// Describes C = alpha A B, or C += alpha A B; A is m x k, B is k x n. A batch has `batch` such
// products, whose matrices are stored contiguously.
struct ProductShape {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;
  MatrixLayout a, b, c;
  float alpha = 1;
  bool adds = false;
  bool packs_b = false;  // Run takes B packed by Pack, so that many products reuse it; batch is 1.
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
  bool packs_panels_;  // B is copied into oneDNN's layout, one panel at a time.
  DnnlDevice device_;
  dnnl::memory::desc a_, b_, c_;
  DnnlPrimitive primitive_;
  LayoutChange packing_;
  WorkspacePlan plan_;
  int64_t packed_ = 0, scratch_ = 0;  // Offsets in the workspace.
};

}  // namespace ckplan::cpu
