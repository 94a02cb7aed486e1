// The shape of LpNormalization and GlobalLpPool, which compute the p-norm of lines: the p-th root
// of the sum of the absolute values' p-th powers.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct LpNormShape {
  AxisView view;  // A line is the elements along the axis of length `size`.
  int64_t p = 2;
};

Result<LpNormShape> ReadLpNormShape(const OpSpec& spec);

}  // namespace ckplan
