// Counts FLOPs and memory traffic of an operator from its shapes; lib/problem/cost converts them to
// time.
//
// A multiply-add counts as two FLOPs. Backward costs the forward FLOPs once for each input that
// needs a gradient; for a matrix operator, only the two factors count (so a layer with weights
// takes them twice, and the first layer once). Each tensor that is read or written counts once in
// the traffic. Backward reads the outputs' gradients and BackwardReads, and writes the gradients of
// its inputs.
#pragma once

#include <cstdint>

#include "lib/base/units.h"
#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Amounts are per run of the operator, over the whole batch.
struct OpWork {
  int64_t forward_flops = 0;
  int64_t backward_flops = 0;  // For the gradients of inputs and of parameters together.
  Bytes forward_traffic;       // Read and written, parameters included.
  Bytes backward_traffic;
  bool is_convolution = false;     // `--cost paper` charges 10 for these, 1 for all else.
  bool uses_matrix_units = false;  // Conv, Gemm, MatMul, ...: runs at the device's matrix rate.
  bool has_half_operands = false;  // An operand of a matrix operator is stored in 16 bits.

  bool operator==(const OpWork&) const = default;
};

// Operand::has_gradient determines which gradients are computed. Backward's work is zero if no
// output has a gradient. `statistic` is the size of the saved statistic.
OpWork WorkOf(const OpSpec& spec, const BackwardReads& reads, Bytes statistic);

// PyTorch's eager backward computes some gradients by several operations, with temporary tensors
// between them.

// Returns the bytes of temporary tensors that are live at once, in addition to the operands and
// gradients of `spec`:
//
//   y = x ^ c   dx = g (c x ^ (c - 1))     the power, and its product with c
//   y = a / b   db = -g ((a / b) / b)      both quotients, -g, and the product, before da
//   y = a b     db = sum(g a)              the product, if b is broadcast; PRelu likewise
//   y = |x|     dx = g sgn(x)              the sign; ReduceL1 likewise
//   y = erf(x)  dx = c exp(-x ^ 2) g       the power, its negative, the exponential, its product
//                                          with c; sin, sqrt, 1 / x and others likewise
//   y = cumsum(x)   dx = flip(cumsum(flip(g)))   the first two results
//   y = max(a, b)   da = where(a = b, g / 2, g), 0 where a < b   all but the last result
//   y = max(x)      dx = (x = y) / sum(x = y) g   the booleans, their sum, and the quotient
//   y = x[i]        dx = zeros + g at i     the zeros
//   in place on a view                     the gradient of the whole tensor, and a copy of it
Bytes EagerTemporaries(const OpSpec& spec);

}  // namespace ckplan
