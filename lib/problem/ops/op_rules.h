// Properties of one operator that follow from its row in the table and its operands.
#pragma once

#include <cstddef>

#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

// Returns whether the operator reads the contents of this input, not only its shape or type.
bool ReadsContents(const OpRule& rule, size_t input);

// Returns whether gradients flow to this input: it is a float and not a ratio, a size or a running
// statistic.
bool IsDifferentiable(const OpRule& rule, const OpSpec& spec, size_t input);
bool IsDifferentiable(const OpSpec& spec, size_t input);

// Returns whether a gradient that arrives at this output flows on. The gradient of a Dropout's
// mask, which is a float before opset 10, does not.
bool PassesGradient(const OpRule& rule, size_t output);

// Returns whether the output shares the memory of the input, unchanged: views, casts to the same
// type, Dropout with ratio 0, and data movements that move nothing.
bool IsView(const OpRule& rule, const OpSpec& spec);

}  // namespace ckplan
