// ReverseSequence: reverses the first elements of each sequence and leaves the rest as it is.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The tensor is outer x middle x inner. The axes of time and of the sequences come first, in either
// order; all others are `inner`.
struct ReverseShape {
  int64_t outer = 1, middle = 1, inner = 1;
  bool is_time_first = true;

  // The longest possible length of a sequence.
  int64_t length() const { return is_time_first ? outer : middle; }
};

Result<ReverseShape> ReadReverseShape(const OpSpec& spec);

}  // namespace ckplan
