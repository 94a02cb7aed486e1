// Einsum's equation: which axes of the operands and of the result are one, and over which the
// products are summed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/ops/families.h"
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

  // By label, its size: an axis of 1 is broadcast to it.
  std::map<char, int64_t> Sizes() const;
  // The product of the sizes of these labels.
  int64_t Count(const std::string& labels) const;
};

// The contraction itself, and by position of inputs those that are their gradients; nothing for an
// input whose gradient nobody asks for.
struct EinsumShape {
  Contraction forward;
  std::vector<std::optional<Contraction>> gradients;
};

// The axes of an ellipsis get the digits as labels, the last one '0'.
Result<EinsumShape> ReadEinsumShape(const OpSpec& spec);

// One loop of a nest: how far each factor, and last the result, moves with a label. The elements
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
