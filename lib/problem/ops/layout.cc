#include "lib/problem/ops/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

int64_t Product(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

Dims BroadcastStrides(const Dims& dims, const Dims& to) {
  CKPLAN_CHECK(dims.size() <= to.size(), "a tensor is not broadcast to a lower rank");
  const Dims row_major = RowMajorStrides(dims);
  Dims strides(to.size(), 0);
  const size_t missing = to.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1) strides[axis + missing] = row_major[axis];
  }
  return strides;
}

Layout Collapse(const Dims& dims, const std::vector<Dims>& strides) {
  Layout layout;
  layout.strides.resize(strides.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    // True if every operand can merge this axis with the previous one.
    bool continues = !layout.dims.empty();
    for (size_t k = 0; continues && k < strides.size(); ++k) {
      continues = layout.strides[k].back() == strides[k][axis] * dims[axis];
    }
    if (continues) {
      layout.dims.back() *= dims[axis];
    } else {
      layout.dims.push_back(dims[axis]);
    }
    for (size_t k = 0; k < strides.size(); ++k) {
      if (!continues) layout.strides[k].push_back(0);
      layout.strides[k].back() = strides[k][axis];
    }
  }
  if (layout.dims.empty()) {
    layout.dims.push_back(1);
    for (Dims& own : layout.strides) own.push_back(0);
  }
  return layout;
}

Layout BroadcastLayout(const Dims& dims, const std::vector<Dims>& operands) {
  std::vector<Dims> strides;
  for (const Dims& operand : operands) strides.push_back(BroadcastStrides(operand, dims));
  strides.push_back(RowMajorStrides(dims));
  return Collapse(dims, strides);
}

Result<size_t> NormalAxis(const OpSpec& spec, int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  const int64_t normal = axis < 0 ? axis + signed_rank : axis;
  if (normal < 0 || normal >= signed_rank) {
    return InvalidOp(spec, fmt::format("axis {} is out of range for rank {}", axis, rank));
  }
  return static_cast<size_t>(normal);
}

Result<std::optional<Dims>> KnownInts(const OpSpec& spec, size_t input,
                                      std::string_view attribute) {
  const Operand& operand = spec.input(input);
  if (!operand.is_present) {
    if (!spec.Has(attribute)) return std::optional<Dims>();
    return std::optional<Dims>(spec.Ints(attribute));
  }
  if (!operand.known.has_value()) {
    return UnsupportedOp(spec,
                         fmt::format("its input \"{}\" is computed during the step", attribute));
  }
  return std::optional<Dims>(operand.known->ints);
}

AxisView ViewAlong(const Dims& dims, size_t axis) {
  AxisView view;
  for (size_t i = 0; i < dims.size(); ++i) {
    (i < axis ? view.outer : i == axis ? view.size : view.inner) *= dims[i];
  }
  return view;
}

namespace {

constexpr size_t kAxes = 4;

// Adds leading axes of size 1 until there are four axes.
Dims PadToFourAxes(const Dims& dims) {
  Dims extended(kAxes - dims.size(), 1);
  extended.insert(extended.end(), dims.begin(), dims.end());
  return extended;
}

Dims ChannelsLast(const Dims& dims) { return {dims[0], dims[2], dims[3], dims[1]}; }

constexpr size_t kSliceAxes = 3;  // The position of the input that lists the axes.

// Returns the axes of a Slice, or null if they are unknown or not listed.
const std::vector<int64_t>* KnownAxesOfSlice(const OpSpec& spec) {
  const Operand& axes = spec.input(kSliceAxes);
  return axes.is_present && axes.known ? &axes.known->ints : nullptr;
}

void StoreOperand(Operand& operand) {
  if (!operand.is_present) return;
  CKPLAN_CHECK(operand.is_channels_last || HasOneOrder(operand.dims),
               "an operand that is not channels-last has the same elements in either order");
  // Some operators require a scalar, so a scalar stays one.
  if (!operand.dims.empty()) operand.dims = ChannelsLast(PadToFourAxes(operand.dims));
  operand.is_channels_last = false;
}

int64_t ChannelsLastAxis(int64_t axis) {
  if (axis < 0) axis += static_cast<int64_t>(kAxes);
  if (axis == 0) return 0;
  return axis == 1 ? static_cast<int64_t>(kAxes) - 1 : axis - 1;
}

}  // namespace

bool HasOneOrder(const Dims& dims) {
  if (dims.size() > kAxes) return false;
  const Dims extended = PadToFourAxes(dims);
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
    if (i == 0 || !is_slice) StoreOperand(spec.inputs[i]);  // The other inputs of Slice are lists.
  }
  for (Operand& output : spec.outputs) StoreOperand(output);
  if (spec.type == "Concat") spec.attributes["axis"] = ChannelsLastAxis(spec.Int("axis", 0));
  if (is_slice) {
    for (int64_t& axis : spec.inputs[kSliceAxes].known->ints) axis = ChannelsLastAxis(axis);
  }
  return spec;
}

}  // namespace ckplan
