// ReverseSequence: the first elements of each sequence in the opposite order, the rest as they are.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// outer x middle x inner: the axes of time and of the sequences, in either order, and all others.
struct ReverseShape {
  int64_t outer = 1, middle = 1, inner = 1;
  bool is_time_first = true;

  int64_t length() const { return is_time_first ? outer : middle; }  // The longest possible.
};

Result<ReverseShape> ReadReverseShape(const OpSpec& spec);

}  // namespace ckplan
