// Finds which operands an operator's backward reads, from the letters in its row of op_table.def.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct BackwardReads {
  // Positions, ascending and without repetition. Constants may be among them.
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;  // Positions.
  bool statistic = false;
};

// `spec` must have a backward. Operands that are needed only for gradients that are not requested
// (see Operand::has_gradient of the inputs) are left out.
BackwardReads FindBackwardReads(const OpSpec& spec, Autograd autograd);

}  // namespace ckplan
