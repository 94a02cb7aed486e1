// The contents that a case is run with.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/reference/op_case.h"
#include "lib/reference/tensor.h"

namespace ckplan::reference {

// Zeros of the operand's type and dimensions; absent where it is.
Tensor EmptyTensor(const Operand& operand);

// By position. The floats of all inputs of a case are different points of one grid, in random
// order, and none is 0: where an operator compares them, a small step changes nothing.
std::vector<Tensor> FillInputs(const OpCase& op_case, uint64_t seed);

// An arriving gradient, in [-1, 1]; absent of an operand that is no float.
Tensor RandomGradient(const Operand& operand, Rng& rng);

}  // namespace ckplan::reference
