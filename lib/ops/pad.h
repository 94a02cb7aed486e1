// Pad in all its modes, and CenterCropPad, as taps: at most one for each element of the output, of
// weight 1; none where the padding is constant.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"
#include "lib/ops/taps.h"

namespace ckplan {

struct PadShape {
  std::vector<AxisTaps> axes;
  bool has_value_input = false;  // Input 2 is what is written where there is no tap; else `value`.
  float value = 0;
};

Result<PadShape> ReadPadShape(const OpSpec& spec);

}  // namespace ckplan
