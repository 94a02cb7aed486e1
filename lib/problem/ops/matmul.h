// The shape of MatMul and Gemm: C = alpha op(A) op(B), and for Gemm a third input that is
// broadcast and added.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Gemm's third input. It has the rows and columns of the output, or 1 where it is broadcast.
struct MatMulAddend {
  bool is_present = false;
  int64_t rows = 1, columns = 1;
  float factor = 1;  // The attribute beta.
};

struct MatMulShape {
  int64_t m = 0, n = 0, k = 0;  // op(A) is m x k, op(B) is k x n.
  // Whether A is stored as k x m, and B as n x k.
  bool is_a_transposed = false, is_b_transposed = false;
  float alpha = 1;
  // The axes before the two matrix axes: A's axes, B's axes, and both broadcast to each other. All
  // are empty if there is a single product. If B is one matrix, all matrices of A are joined into
  // one matrix with more rows.
  Dims a_leading, b_leading, leading;
  MatMulAddend addend;
};

Result<MatMulShape> ReadMatMulShape(const OpSpec& spec);

}  // namespace ckplan
