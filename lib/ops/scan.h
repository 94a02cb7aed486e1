// Operators that walk the lines along one axis: running sums, and where the extremes are.
#pragma once

#include "lib/base/result.h"
#include "lib/ops/axes.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct CumSumShape {
  AxisView view;
  bool is_exclusive = false;  // A sum leaves out its own element.
  bool is_reverse = false;    // Sums begin at the last element.
};
Result<CumSumShape> ReadCumSumShape(const OpSpec& spec);

// ArgMax and ArgMin.
struct ArgShape {
  AxisView view;
  bool is_max = true;
  bool takes_last = false;  // Where extremes are equal, the last one counts.
};
Result<ArgShape> ReadArgShape(const OpSpec& spec);

Result<AxisView> ReadHardmaxShape(const OpSpec& spec);

}  // namespace ckplan
