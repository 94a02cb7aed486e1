// The shape of Softmax and LogSoftmax. From opset 13 on they normalise along one axis; before, they
// treated all axes from the given one to the last as a single axis.
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
