// Shapes of elementwise operators: activations, unary and binary arithmetic, logic, casts.
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The attribute b of PyTorch's Softplus, log(1 + e^(b x)) / b: a nonzero float. ONNX's Softplus
// does not have it.
inline constexpr std::string_view kFactorAttribute = "factor";

Result<Done> ValidateActivation(const OpSpec& spec);

// Returns the exponent of a floating-point Pow if it is a single number, known before the step,
// that needs no gradient. Such powers have special kernels for all exponent types.
std::optional<double> KnownExponent(const OpSpec& spec);

}  // namespace ckplan
