// Reductions along axes: sums, means, products, minima, maxima and norms.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct ReduceShape {
  // Strides of the input and the output; the output's are 0 along reduced axes.
  Layout layout;
  int64_t results = 1;   // Elements of the output.
  int64_t elements = 1;  // Elements of the input.
};

Result<ReduceShape> ReadReduceShape(const OpSpec& spec);

}  // namespace ckplan
