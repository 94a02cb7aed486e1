// Arithmetic of two operands, each broadcast to the output.
#pragma once

#include <optional>

#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Returns the exponent of a floating-point Pow if it is a single number that is known before the
// step and needs no gradient. Such powers have kernels of their own, whatever the exponent's type.
std::optional<double> KnownExponent(const OpSpec& spec);

}  // namespace ckplan
