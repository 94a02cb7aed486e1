// Judges by an operation's name what recomputing it costs: for Chen et al. 2016, section 4.2.
#pragma once

#include <string_view>

namespace ckplan {

enum class OpPrice {
  kNormOrActivation,  // A normalisation or an activation function.
  kOtherCheap,        // Pooling, dropout, an elementary function: far cheaper than a convolution.
  kCostly,            // A convolution, matrix product, recurrent layer or attention.
  kUnknown,
};

// Judges an ONNX operator by the table of lib/problem/ops, and an operator of another framework by
// its name. Such an operator is cheap if norm, relu, pool, sigmoid, ... occur anywhere in its name,
// unless a costly operation does as well ("Conv+Relu").
OpPrice PriceOf(std::string_view op);

}  // namespace ckplan
