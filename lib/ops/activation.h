// Activation functions: an element of the output is a function of one element of the input.
#pragma once

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

Result<Done> JudgeActivation(const OpSpec& spec);

}  // namespace ckplan
