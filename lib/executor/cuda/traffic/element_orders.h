// In which orders of elements the operators of this backend take their tensors, decided from their
// shapes; needs no kernels.
#pragma once

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/window.h"

namespace ckplan::cuda {

// Whether a product or convolution takes its factors as bfloat16.
inline bool MultipliesHalves(const OpSpec& spec) {
  return spec.input(0).type == ElementType::kBFloat16 ||
         spec.input(1).type == ElementType::kBFloat16 ||
         spec.output(0).type == ElementType::kBFloat16;
}

// Convolutions of bfloat16 take each of their tensors in either order, and tensor cores want the
// channels last. Normalisations of batches, pools, elementwise operators, Concat and Slice take
// all of theirs alike.
ElementOrders OrdersOf(const OpSpec& spec);

// Returns whether padding both sides by `begin` gives the output size, which cuDNN derives itself.
bool FitsEvenPads(const Window& window);

}  // namespace ckplan::cuda
