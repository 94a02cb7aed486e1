// What one operation does, in terms that need no ONNX: the input of the cost models.
#pragma once

#include <cstdint>

#include "lib/base/units.h"

namespace ckplan {

// Amounts are per run of the operation, over the whole batch.
struct OpWork {
  int64_t forward_flops = 0;   // A multiply-add counts as two.
  int64_t backward_flops = 0;  // For the gradients of inputs and of parameters together.
  Bytes forward_traffic;       // Read and written, parameters included.
  Bytes backward_traffic;
  bool is_convolution = false;  // `--cost paper` charges 10 for these, 1 for all else.
  bool uses_matrix_units =
      false;  // Convolution, Gemm, MatMul, ...: runs at the device's matrix rate.
};

}  // namespace ckplan
