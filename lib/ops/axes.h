// Axes and small integer operands as attributes or as inputs, as the opsets have them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// The axis as an index from 0; kUnsupported where the tensor has no such axis.
Result<size_t> NormalAxis(const OpSpec& spec, int64_t axis, size_t rank);

// The contents of an integer input that must be known, or of the attribute that older opsets have
// in its place; nothing where both are absent.
Result<std::optional<Dims>> KnownInts(const OpSpec& spec, size_t input, std::string_view attribute);

// By axis of the first input of a Reduce operator.
Result<std::vector<bool>> ReducedAxes(const OpSpec& spec);

// A tensor seen from an axis: outer x size x inner.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView ViewAlong(const Dims& dims, size_t axis);

}  // namespace ckplan
