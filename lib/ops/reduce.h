// Reductions along axes: sums, means, products, extremes and norms.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct ReduceShape {
  Layout layout;         // Of the input and of the result, which does not move along reduced axes.
  int64_t results = 1;   // Elements of the output.
  int64_t elements = 1;  // Elements of the input.
};

Result<ReduceShape> ReadReduceShape(const OpSpec& spec);

}  // namespace ckplan
