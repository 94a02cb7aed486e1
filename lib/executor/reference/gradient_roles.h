// Sets the members of an operator's spec that concern gradients, as in a planned step: which are
// requested, what backward may read, and what forward saves for backward.
#pragma once

#include <vector>

#include "lib/executor/reference/op_case.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::reference {

// Sets has_gradient, is_read_by_backward and statistic_bytes of the spec, by the table of
// lib/problem/ops under `autograd`. `wants` and `is_constant` say for each input whether its
// gradient is requested and whether it is constant during the step. `arrives` says for each output
// whether its gradient arrives.
void SetGradientRoles(OpSpec& spec, const std::vector<bool>& wants,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives,
                      Autograd autograd = Autograd::kMinimal);

// Returns the spec of a case. The roles of the operands decide which gradients are requested; the
// gradients of all float outputs arrive.
OpSpec SpecOfCase(const CaseRow& row, Autograd autograd = Autograd::kMinimal);

}  // namespace ckplan::reference
