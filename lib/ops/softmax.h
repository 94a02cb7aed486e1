// The shape of Softmax and LogSoftmax: along one axis, or, below opset 13, over all axes from one
// on, as if they were one.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/axes.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

using SoftmaxShape = AxisView;

Result<SoftmaxShape> ReadSoftmaxShape(const OpSpec& spec);

}  // namespace ckplan
