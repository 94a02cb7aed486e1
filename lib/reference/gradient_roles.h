// Sets what the spec of an operator says about gradients, as in a planned step: which are asked
// for, what backward may read, and what forward saves for it.
#pragma once

#include <vector>

#include "lib/ops/op_spec.h"
#include "lib/reference/op_case.h"

namespace ckplan::reference {

// Sets has_gradient, is_read_by_backward and statistic_bytes of the spec, by the table of lib/ops
// under Autograd::kMinimal. `wants` and `is_constant` say for each input whether its gradient is
// asked for and whether it is constant during the step; `arrives` says for each output whether its
// gradient arrives.
void SetGradientRoles(OpSpec& spec, const std::vector<bool>& wants,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives);

// The spec of a case, with the gradients that the roles of its operands ask for; the gradients of
// all float outputs arrive.
OpSpec SpecOfCase(const CaseRow& row);

}  // namespace ckplan::reference
