// The shape of LpNormalization and GlobalLpPool: norms of lines, the p-th root of the sum of p-th
// powers.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/axes.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct LpNormShape {
  AxisView view;  // A line is the elements along `size`.
  int64_t p = 2;
};

Result<LpNormShape> ReadLpNormShape(const OpSpec& spec);

}  // namespace ckplan
