// Reads axes, for the references of data movements.
#pragma once

#include <algorithm>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

inline size_t NormalAxis(int64_t axis, const Tensor& tensor) {
  return static_cast<size_t>(axis < 0 ? axis + tensor.rank() : axis);
}

}  // namespace ckplan::reference
