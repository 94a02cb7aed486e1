// Shapes of matrix products and of Einsum.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The shape of MatMul and Gemm: C = alpha op(A) op(B), plus, for Gemm, a broadcast third input.

// Gemm's third input: `rows` and `columns` are those of the output, or 1 if broadcast.
struct MatMulAddend {
  bool is_present = false;
  int64_t rows = 1, columns = 1;
  float factor = 1;  // The attribute beta.
};

struct MatMulShape {
  int64_t m = 0, n = 0, k = 0;  // op(A) is m x k, op(B) is k x n.
  // True if A is stored as k x m, and B as n x k.
  bool is_a_transposed = false, is_b_transposed = false;
  float alpha = 1;
  // The axes before the two matrix axes: A's, B's, and the two broadcast to each other. All are
  // empty for a single product. If B is one matrix, the matrices of A are stacked into one.
  Dims a_leading, b_leading, leading;
  MatMulAddend addend;
};

Result<MatMulShape> ReadMatMulShape(const OpSpec& spec);

// The shape of Einsum.

// An operand: the label and the size of each axis. The size is 1 if the axis is broadcast.
struct Term {
  std::string labels;
  Dims dims;
};

// result = the product of the factors, summed over the labels that the result lacks.
struct Contraction {
  std::vector<Term> factors;
  Term result;

  // Returns the size of each label. Axes of size 1 are broadcast to it.
  std::map<char, int64_t> Sizes() const;
  // Returns the product of the sizes of these labels.
  int64_t Count(const std::string& labels) const;
};

// The forward contraction, and the contraction for each input's gradient if it is requested.
struct EinsumShape {
  Contraction forward;
  std::vector<std::optional<Contraction>> gradients;
};

// Labels the axes of an ellipsis with digits; the last one is '0'.
Result<EinsumShape> ReadEinsumShape(const OpSpec& spec);

// The loop over one label, with the strides of the factors and, last, of the result. A repeated
// label in the result reaches only the diagonal; the other elements are zero.
struct ContractionLoop {
  int64_t size = 1;
  Dims strides;
};
std::vector<ContractionLoop> LoopsOf(const Contraction& contraction);

// The labels of a matrix product, by where they occur: `batch` in both factors and the result, `m`
// and `n` in one factor and the result, `k` only in both factors.
struct ProductLabels {
  std::string batch, m, n, k;
};
// Returns nothing if the contraction is not a matrix product.
std::optional<ProductLabels> FindProduct(const Contraction& contraction);

}  // namespace ckplan
