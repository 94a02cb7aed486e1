// Which operands an operator's backward reads: the letters of op_table.def, spelled out.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/ops/autograd.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct BackwardReads {
  std::vector<size_t> inputs;   // Positions; ascending, each once. Constants may be among them.
  std::vector<size_t> outputs;  // Positions.
  bool statistic = false;
};

// For an operator that has a backward. What is needed only for a gradient that nobody asks for
// (Operand::has_gradient of the inputs) is not read.
BackwardReads FindBackwardReads(const OpSpec& spec, Autograd autograd);

}  // namespace ckplan
