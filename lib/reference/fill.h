// Generates the contents that a case is run with.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/reference/op_case.h"
#include "lib/reference/tensor.h"

namespace ckplan::reference {

// Zeros of the operand's type and dimensions; an absent tensor for an absent operand.
Tensor EmptyTensor(const Operand& operand);

// One tensor for each input. All floats of a case are different points of one grid, in random
// order, and none is 0, so that a small step does not change the result of comparing two of them.
std::vector<Tensor> FillInputs(const OpCase& op_case, uint64_t seed);

// Contents in [-1, 1] for the gradient of an output; an absent tensor for an operand that is no
// float.
Tensor RandomGradient(const Operand& operand, Rng& rng);

}  // namespace ckplan::reference
