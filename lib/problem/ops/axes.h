// Reads axes and small integer operands, which are attributes in some opsets and inputs in others.
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Returns the axis counted from 0; a negative `axis` counts from the end. kInvalidInput: a tensor
// of this rank has no such axis.
Result<size_t> NormalAxis(const OpSpec& spec, int64_t axis, size_t rank);

// Returns the contents of an integer input, or of the attribute that older opsets have instead, or
// nothing if both are absent. kUnsupported: the input is computed during the step.
Result<std::optional<Dims>> KnownInts(const OpSpec& spec, size_t input, std::string_view attribute);

// A tensor reshaped to three axes around one of its own: outer x size x inner.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView ViewAlong(const Dims& dims, size_t axis);

}  // namespace ckplan
