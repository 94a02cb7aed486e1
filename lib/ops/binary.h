// Arithmetic of two operands, each broadcast to the output.
#pragma once

#include <optional>

#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// The exponent of a Pow of floats, where it is one number that is known and has no gradient: such
// powers have kernels of their own, whatever the type of the exponent.
std::optional<double> KnownExponent(const OpSpec& spec);

}  // namespace ckplan
