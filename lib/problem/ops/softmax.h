// The shape of Softmax and LogSoftmax. From opset 13 on they normalise along one axis; before, they
// treated all axes from the given one to the last as a single axis.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

using SoftmaxShape = AxisView;

Result<SoftmaxShape> ReadSoftmaxShape(const OpSpec& spec);

// The attribute of a Softmax that makes zeros of its NaNs, as PyTorch's does within an attention. A
// row has NaNs if all of its elements are -infinity.
inline constexpr std::string_view kGuardAttribute = "guard";
bool IsGuarded(const OpSpec& spec);

}  // namespace ckplan
