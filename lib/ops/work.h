// FLOPs and memory traffic of one operator, from its shapes: what lib/cost turns into time.
//
// A multiply-add counts as two. Backward of a matrix operator: the forward count once for each
// operand that needs a gradient (two for a layer with weights, one for the first layer); of all
// else: once for each input that needs one. Traffic: every tensor read or written, once; backward
// reads the gradients of the outputs and its backward reads, and writes the gradients it computes.
#pragma once

#include <cstdint>

#include "lib/base/units.h"
#include "lib/ops/backward_reads.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// Amounts are per run of the operator, over the whole batch.
struct OpWork {
  int64_t forward_flops = 0;
  int64_t backward_flops = 0;  // For the gradients of inputs and of parameters together.
  Bytes forward_traffic;       // Read and written, parameters included.
  Bytes backward_traffic;
  bool is_convolution = false;     // `--cost paper` charges 10 for these, 1 for all else.
  bool uses_matrix_units = false;  // Conv, Gemm, MatMul, ...: runs at the device's matrix rate.
};

// Operand::has_gradient says which gradients are computed; where none of an output arrives, there
// is no backward. `statistic` is what forward saves beside the outputs.
OpWork WorkOf(const OpSpec& spec, const BackwardReads& reads, Bytes statistic);

}  // namespace ckplan
