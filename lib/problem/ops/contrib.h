// Checks the operators that ONNX Runtime adds to ONNX (com.microsoft). ONNX has no rules for them,
// so the loader asks here before it takes an output's declared shape for granted, or replaces the
// operator by ONNX's own. The rules are those that ONNX Runtime 1.32 checks when it runs the node.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// kInvalidInput: a required operand is missing, or operands and attributes contradict each other.
// The shapes of all operands that are present must be known; outputs are not read. Operators
// without rules pass.
Result<Done> ValidateContrib(const OpSpec& spec);

}  // namespace ckplan
