// The shape of MeanVarianceNormalization. The axes that are not averaged over must be neighbours;
// each index of these axes is a channel.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/channels.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

using MeanVarianceNormShape = ChannelView;

Result<MeanVarianceNormShape> ReadMeanVarianceNormShape(const OpSpec& spec);

}  // namespace ckplan
