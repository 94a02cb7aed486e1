// Pad in all its modes, and CenterCropPad, as taps. Each element of the output has one tap of
// weight 1, or no tap where it is filled with a constant.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/taps.h"

namespace ckplan {

struct PadShape {
  std::vector<AxisTaps> axes;
  // Elements without a tap are filled with input 2 if true, with `value` if false.
  bool has_value_input = false;
  float value = 0;
};

Result<PadShape> ReadPadShape(const OpSpec& spec);

}  // namespace ckplan
