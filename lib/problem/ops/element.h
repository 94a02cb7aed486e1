// GatherElements and ScatterElements: every element has its own index along one axis, and keeps its
// position along all others.
#pragma once

#include <cstddef>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Returns the axis along which the data (input 0) is indexed by the indices (input 1). Both have
// the same number of axes, and along the other axes the indices are not longer than the data.
// Kernels check whether the indices themselves are in range.
Result<size_t> ReadElementAxis(const OpSpec& spec);

}  // namespace ckplan
