// Shapes of elementwise operators: activations, unary and binary arithmetic, logic, casts.
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Activation functions: an element of the output is a function of one element of the input.

// The attribute of a Softplus that is log(1 + e^(b x)) / b, as PyTorch has it: b, a float other
// than 0. ONNX's Softplus has none.
inline constexpr std::string_view kFactorAttribute = "factor";

Result<Done> ValidateActivation(const OpSpec& spec);

// Arithmetic of two operands, each broadcast to the output.

// Returns the exponent of a floating-point Pow if it is a single number that is known before the
// step and needs no gradient. Such powers have kernels of their own, whatever the exponent's type.
std::optional<double> KnownExponent(const OpSpec& spec);

}  // namespace ckplan
