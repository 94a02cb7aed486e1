// Pad in all its modes, and CenterCropPad, as taps: at most one for each element of the output, of
// weight 1; none where the padding is constant.
#pragma once

#include <vector>

#include "lib/ops/op_spec.h"
#include "lib/ops/taps.h"

namespace ckplan {

// By axis. kUnsupported: modes that no backend knows, and pads that are not known.
Result<std::vector<AxisTaps>> ReadPads(const OpSpec& spec);
// The shape of the output is known; the middle stays in the middle, an odd rest goes to the end.
std::vector<AxisTaps> ReadCenterCropPad(const OpSpec& spec);

}  // namespace ckplan
