// FLOPs and memory traffic of one operator, counted from its shapes; lib/problem/cost turns them
// into time.
//
// A multiply-add counts as two FLOPs. Backward of a matrix operator takes the forward count once
// for each operand that needs a gradient (twice for a layer with weights, once for the first
// layer); backward of any other operator takes it once for each input that needs a gradient. Every
// tensor that is read or written counts once in the traffic. Backward reads the gradients of the
// outputs and what it needs from forward (BackwardReads), and writes the gradients that it
// computes.
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
  bool has_half_operands = false;  // Some operand of a matrix operator is stored in 16 bits.
};

// Operand::has_gradient says which gradients are computed. The work of backward is empty if no
// output receives a gradient. `statistic` is the size of what forward saves besides the outputs.
OpWork WorkOf(const OpSpec& spec, const BackwardReads& reads, Bytes statistic);

// The temporary tensors that PyTorch's eager backward makes besides gradients, where it composes a
// gradient of several operations.

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
