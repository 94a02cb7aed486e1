// What an operator is given to know about gradients, as in a planned step: which are asked for,
// what backward may read, and what forward saves for it.
#pragma once

#include <vector>

#include "lib/ops/op_spec.h"
#include "lib/reference/op_case.h"

namespace ckplan::reference {

// Sets has_gradient, is_read_by_backward and statistic_bytes of the spec, by the table of lib/ops
// under Autograd::kMinimal. By position of inputs: whose gradient is asked for, and which are
// constant during the step. By position of outputs: whose gradient arrives.
void SetGradientRoles(OpSpec& spec, const std::vector<bool>& wants,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives);

// The spec of a case, with the gradients that the roles of its operands ask for; those of all float
// outputs arrive.
OpSpec SpecOfCase(const CaseRow& row);

}  // namespace ckplan::reference
