// What a kernel is told about gradients, as the planner would: which are asked for, what backward
// may read, and what forward saves for it.
#pragma once

#include <vector>

#include "lib/ops/op_spec.h"

namespace ckplan::reference {

// Sets has_gradient, is_read_by_backward and statistic_bytes of the spec, by the table of lib/ops
// under Autograd::kMinimal. By position of inputs: whose gradient is asked for, and which are
// constant during the step. By position of outputs: whose gradient arrives.
void SetGradientRoles(OpSpec& spec, const std::vector<bool>& wants,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives);

}  // namespace ckplan::reference
