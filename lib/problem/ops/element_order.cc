#include "lib/problem/ops/element_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/problem/ops/op_rules.h"

namespace ckplan {

namespace {

constexpr size_t kAxes = 4;

// Returns the dimensions with ones before them, so that there are four.
Dims Extended(const Dims& dims) {
  Dims extended(kAxes - dims.size(), 1);
  extended.insert(extended.end(), dims.begin(), dims.end());
  return extended;
}

Dims ChannelsLast(const Dims& dims) { return {dims[0], dims[2], dims[3], dims[1]}; }

constexpr size_t kSliceAxes = 3;  // The position of the input that lists the axes.

// Returns the axes of a Slice, or null if they are not known or not listed.
const std::vector<int64_t>* KnownAxesOfSlice(const OpSpec& spec) {
  const Operand& axes = spec.input(kSliceAxes);
  return axes.is_present && axes.known ? &axes.known->ints : nullptr;
}

void StoreOperand(Operand& operand) {
  if (!operand.is_present) return;
  CKPLAN_CHECK(operand.is_channels_last || HasOneOrder(operand.dims),
               "operands without a mark have one order");
  // A scalar stays a scalar, which some operators ask for.
  if (!operand.dims.empty()) operand.dims = ChannelsLast(Extended(operand.dims));
  operand.is_channels_last = false;
}

int64_t StoredAxis(int64_t axis) {
  if (axis < 0) axis += static_cast<int64_t>(kAxes);
  if (axis == 0) return 0;
  return axis == 1 ? static_cast<int64_t>(kAxes) - 1 : axis - 1;
}

}  // namespace

bool HasOneOrder(const Dims& dims) {
  if (dims.size() > kAxes) return false;
  const Dims extended = Extended(dims);
  return extended[1] == 1 || extended[2] * extended[3] == 1;
}

Dims StoredDims(const Operand& operand) {
  return operand.is_channels_last ? ChannelsLast(operand.dims) : operand.dims;
}

bool HasStoredOrder(const OpSpec& spec) {
  if (spec.type == "Slice") return KnownAxesOfSlice(spec) != nullptr;
  return spec.type == "Concat" || RuleOf(spec.type).is_elementwise();
}

OpSpec InStoredOrder(OpSpec spec) {
  const auto is_marked = [](const Operand& operand) { return operand.is_channels_last; };
  if (std::none_of(spec.inputs.begin(), spec.inputs.end(), is_marked) &&
      std::none_of(spec.outputs.begin(), spec.outputs.end(), is_marked)) {
    return spec;
  }
  const bool is_slice = spec.type == "Slice";
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (i == 0 || !is_slice) StoreOperand(spec.inputs[i]);  // The others of a slice are lists.
  }
  for (Operand& output : spec.outputs) StoreOperand(output);
  if (spec.type == "Concat") spec.attributes["axis"] = StoredAxis(spec.Int("axis", 0));
  if (is_slice) {
    for (int64_t& axis : spec.inputs[kSliceAxes].known->ints) axis = StoredAxis(axis);
  }
  return spec;
}

}  // namespace ckplan
