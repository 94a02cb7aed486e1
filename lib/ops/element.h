// GatherElements and ScatterElements: each element has an index of its own along one axis, and the
// place of its own along the others.
#pragma once

#include <cstddef>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// Along which axis the data, input 0, is indexed by input 1. Both have the same number of axes, and
// along the others the indices are at most as many as the data. Whether the indices themselves lie
// inside is for kernels to see.
Result<size_t> ReadElementAxis(const OpSpec& spec);

}  // namespace ckplan
