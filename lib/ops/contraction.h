// Einsum's equation: which axes of the operands and of the result are one, and over which the
// products are summed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// An operand: by axis its label, and its size, which is 1 where it is broadcast.
struct Term {
  std::string labels;
  Dims dims;
};

// result = sum over all other labels of the product of the factors.
struct Contraction {
  std::vector<Term> factors;
  Term result;

  // Of each label, the greatest that it has.
  std::map<char, int64_t> Sizes() const;
};

// Of an Einsum. An ellipsis' axes get the digits as labels, the last one '0'.
Contraction ReadEquation(const OpSpec& spec);

// Of the factor at `position`: the arriving gradient takes its place.
Contraction GradientOf(const Contraction& forward, size_t position);

// One of nested loops: how far each factor, and last the result, moves with a label. The elements
// of the result that no loop reaches are zero: a diagonal leaves the rest as it is.
struct ContractionLoop {
  int64_t size = 1;
  Dims strides;
};
std::vector<ContractionLoop> LoopsOf(const Contraction& contraction);

// Labels of a product of two: of both factors and the result, of one factor and the result, and of
// both factors alone.
struct ProductLabels {
  std::string batch, m, n, k;
};
// Nothing where the contraction is no product of matrices.
std::optional<ProductLabels> FindProduct(const Contraction& contraction);

}  // namespace ckplan
