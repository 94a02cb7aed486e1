// The temporary tensors that PyTorch's eager backward makes besides gradients, where it composes a
// gradient of several operations.
#pragma once

#include "lib/base/units.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Returns the bytes of those that are live at once, beside the operands and gradients of `spec`:
//
//   y = x ^ c   dx = g (c x ^ (c - 1))     the power, and its product with c
//   y = a / b   db = -g ((a / b) / b)      both quotients
//   y = a b     db = sum(g a)              the product, where b is broadcast; PRelu likewise
//   y = |x|         dx = g sgn(x)          the sign
//   y = erf(x)      dx = c exp(-x ^ 2) g   the power, its negative, the exponential, its product
//   with c y = cumsum(x)   dx = flip(cumsum(flip(g)))     both before the last in place on a view
//   the gradient of the whole tensor, and a copy of it
Bytes EagerTemporaries(const OpSpec& spec);

}  // namespace ckplan
