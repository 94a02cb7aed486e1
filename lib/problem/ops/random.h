// Dropout, and the operators that draw random numbers.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Returns the fraction of elements that a Dropout sets to 0, between 0 and 1.
Result<double> ReadDropoutRatio(const OpSpec& spec);

}  // namespace ckplan
