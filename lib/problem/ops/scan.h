// Operators that scan each line along an axis: cumulative sums, and the indices of extreme values.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct CumSumShape {
  AxisView view;
  bool is_exclusive = false;  // Each sum excludes the element at its own position.
  bool is_reverse = false;    // Sums start at the last element.
};
Result<CumSumShape> ReadCumSumShape(const OpSpec& spec);

// The shape of ArgMax and ArgMin.
struct ArgShape {
  AxisView view;
  bool is_max = true;
  bool takes_last = false;  // Among equal extreme values, the last one is chosen.
};
Result<ArgShape> ReadArgShape(const OpSpec& spec);

Result<AxisView> ReadHardmaxShape(const OpSpec& spec);

}  // namespace ckplan
