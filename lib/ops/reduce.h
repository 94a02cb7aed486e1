// Reductions along axes: sums, means, products, extremes and norms.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct ReduceShape {
  Layout layout;         // Strides of input and result; those of the result are 0 on reduced axes.
  int64_t results = 1;   // Elements of the output.
  int64_t elements = 1;  // Elements of the input.
};

Result<ReduceShape> ReadReduceShape(const OpSpec& spec);

}  // namespace ckplan
