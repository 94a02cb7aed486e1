// Checks the operators that ONNX Runtime adds to ONNX (com.microsoft), with the rules that ONNX
// Runtime 1.32 applies when it runs a node. ONNX has no rules for them, so the loader calls this
// before it trusts an output's declared shape or replaces the operator with one of ONNX.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// kInvalidInput: a required operand is missing, or operands and attributes contradict each other.
// The shapes of all present operands must be known; outputs are ignored. Operators without rules
// pass.
Result<Done> ValidateContrib(const OpSpec& spec);

}  // namespace ckplan
