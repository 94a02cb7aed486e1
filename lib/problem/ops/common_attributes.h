// Rules for attributes and operands that mean the same in all operators that have them: axes, lists
// with a number for each axis, windows and counts. They need no output, so that they can be asked
// before ONNX's inference, which uses such numbers as positions and as lengths.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// kInvalidInput: an attribute names an axis far outside its operand, a count or a part of a window
// is below its least value or above 32 bits, or a list is longer than any tensor has axes. Operands
// of unknown shape are absent from the spec.
Result<Done> JudgeCommonAttributes(const OpSpec& spec);

}  // namespace ckplan
