// Properties of one operator that follow from its row in the table and its operands.
#pragma once

#include <cstddef>

#include "lib/ops/op_spec.h"
#include "lib/ops/op_table.h"

namespace ckplan {

// Whether the operator reads the contents of this input, rather than its shape or type alone.
bool ReadsContents(const OpRule& rule, size_t input);

// Whether gradients flow to this input: it is a float, and not a ratio, size or running statistic.
bool IsDifferentiable(const OpRule& rule, const OpSpec& spec, size_t input);
bool IsDifferentiable(const OpSpec& spec, size_t input);

// Whether a gradient that arrives at this output flows on: that of a Dropout's mask, which is a
// float before opset 10, does not.
bool PassesGradient(const OpRule& rule, size_t output);

// Whether the output has the memory of the input, unchanged: views, casts to the same type, Dropout
// with ratio 0, and movements that move nothing.
bool IsView(const OpRule& rule, const OpSpec& spec);

}  // namespace ckplan
