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

// The shape of MatMul and Gemm: C = alpha op(A) op(B), and for Gemm a third input that is
// broadcast and added.

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

// Einsum's equation: which axes of the operands and the result have the same label, and over which
// labels the products are summed.

// An operand: the label of each axis and its size, which is 1 where the axis is broadcast.
struct Term {
  std::string labels;
  Dims dims;
};

// result = sum over all other labels of the product of the factors.
struct Contraction {
  std::vector<Term> factors;
  Term result;

  // The size of each label. Axes of size 1 are broadcast to it.
  std::map<char, int64_t> Sizes() const;
  // The product of the sizes of these labels.
  int64_t Count(const std::string& labels) const;
};

// The forward contraction, and for each input the contraction that computes its gradient, or
// nothing if that gradient is not requested.
struct EinsumShape {
  Contraction forward;
  std::vector<std::optional<Contraction>> gradients;
};

// The axes that an ellipsis stands for are labelled with digits; the last one is '0'.
Result<EinsumShape> ReadEinsumShape(const OpSpec& spec);

// One of the nested loops: how far each factor and, as the last entry, the result move in memory
// when the index of one label grows by 1. Elements of the result that no loop reaches are zero: for
// a repeated label, only the diagonal is reached.
struct ContractionLoop {
  int64_t size = 1;
  Dims strides;
};
std::vector<ContractionLoop> LoopsOf(const Contraction& contraction);

// The labels of a matrix product, by where they occur: `batch` in both factors and the result, `m`
// and `n` in one factor and the result, `k` in both factors alone.
struct ProductLabels {
  std::string batch, m, n, k;
};
// Returns nothing if the contraction is no matrix product.
std::optional<ProductLabels> FindProduct(const Contraction& contraction);

}  // namespace ckplan
