// Activation functions: an element of the output is a function of one element of the input.
#pragma once

#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The attribute of a Softplus that is log(1 + e^(b x)) / b, as PyTorch has it: b, a float.
inline constexpr std::string_view kFactorAttribute = "factor";

Result<Done> JudgeActivation(const OpSpec& spec);

}  // namespace ckplan
