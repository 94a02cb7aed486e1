// Generates the contents of a case's operands.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/executor/reference/op_case.h"
#include "lib/executor/reference/tensor.h"

namespace ckplan::reference {

// Returns zeros of the operand's type and dimensions, or an absent tensor for an absent operand.
Tensor EmptyTensor(const Operand& operand);

// Returns one tensor for each input. All floats of a case are different points of one grid, in
// random order, and none is 0, so that a small step does not change the result of comparing two of
// them.
std::vector<Tensor> FillInputs(const OpCase& op_case, uint64_t seed);

// Returns contents in [-1, 1] for the gradient of an output, or an absent tensor for an operand
// that is not a float.
Tensor RandomGradient(const Operand& operand, Rng& rng);

}  // namespace ckplan::reference
