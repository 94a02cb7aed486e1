// What an operation costs to run again, judged by its name: for Chen et al. 2016, section 4.2.
#pragma once

#include <string_view>

namespace ckplan {

enum class OpPrice {
  kNormOrActivation,  // A normalisation or an activation function.
  kOtherCheap,        // Pooling, dropout, an elementary function: little beside a convolution.
  kCostly,            // A convolution, matrix product, recurrent layer or attention.
  kUnknown,
};

// An operator of ONNX is judged by the table of lib/ops, that of another framework by its name:
// norm, relu, pool, sigmoid, ... anywhere in it, unless it names a costly one as well
// ("Conv+Relu").
OpPrice PriceOf(std::string_view op);

}  // namespace ckplan
