// Describes how to traverse several tensors together: the axes of the result, and each operand's
// stride along them. Adjacent axes that every operand can traverse as one are merged, so that
// contiguous or broadcast parts become one long inner loop:
//
//   [8,64,56,56] + [64,1,1]   becomes   dims {8, 64, 3136}, strides {200704, 3136, 1} {0, 1, 0}
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

using Dims = std::vector<int64_t>;

int64_t Product(const Dims& dims);
// Returns the strides of a row-major tensor, in elements.
Dims RowMajorStrides(const Dims& dims);
// Returns the strides for reading a tensor of shape `dims` as if it had shape `to`: 0 along axes
// that the tensor lacks or where its size is 1.
Dims BroadcastStrides(const Dims& dims, const Dims& to);

struct Layout {
  Dims dims;                  // At least one axis.
  std::vector<Dims> strides;  // Per operand and axis, in elements.

  int64_t count() const { return Product(dims); }
  int64_t inner() const { return dims.back(); }
  int64_t inner_stride(size_t operand) const { return strides[operand].back(); }
};

// Drops axes of size 1 and merges axes that can be traversed as one.
Layout Collapse(const Dims& dims, const std::vector<Dims>& strides);
// Returns the layout of operands that are broadcast to `dims`, with the result as the last operand.
Layout BroadcastLayout(const Dims& dims, const std::vector<Dims>& operands);

// Converts a negative axis, which counts from the end. kInvalidInput: `axis` is out of range for
// `rank`.
Result<size_t> NormalAxis(const OpSpec& spec, int64_t axis, size_t rank);

// Returns the contents of an integer input, or of the attribute that older opsets use instead;
// nothing if both are absent. kUnsupported: the input is computed during the step.
Result<std::optional<Dims>> KnownInts(const OpSpec& spec, size_t input, std::string_view attribute);

// A tensor reshaped to three axes around one of its axes: outer x size x inner.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView ViewAlong(const Dims& dims, size_t axis);

// A tensor reshaped to samples x channels x positions, for operators that treat each channel
// separately. With channels last, each position is a sample.
struct ChannelView {
  int64_t samples = 1, channels = 1, positions = 1;

  // The index of the first element of `channel` in `sample`.
  int64_t offset(int64_t sample, int64_t channel) const {
    return (sample * channels + channel) * positions;
  }
  int64_t channel_size() const { return samples * positions; }
};

// The order of a four-axis tensor's elements in memory:
//
//   of the model    [N, C, H, W], row-major
//   channels last   [N, H, W, C], row-major: Operand::is_channels_last
//
// With a single channel or a single position, both orders are the same, and the flag is not set.
//
// Most operators can ignore the order: an elementwise operator, Concat or Slice whose tensors are
// all channels last is the same operator on the axes as stored, which InStoredOrder returns. Other
// operators look at each operand's flag.
//
// The orders that a backend's operator accepts for its four-axis tensors.
enum class ElementOrders : uint8_t {
  kOfModel,  // As in the model.
  kAlike,    // Any order, but the same for all tensors.
  // Any order for the first input and for the first output, separately; the model's order for the
  // other tensors. The operator is faster with channels last.
  kEach,
};

// Returns true if both orders of the tensor are the same. Missing axes count as leading axes of
// size 1.
bool HasOneOrder(const Dims& dims);
// Returns the dimensions in the order in which they are stored.
Dims StoredDims(const Operand& operand);

// Returns true if InStoredOrder works for this operator when each of its tensors is channels last
// or has the same elements in either order.
bool HasStoredOrder(const OpSpec& spec);
// Rewrites the operator for tensors as they are stored, and clears is_channels_last. Returns the
// spec unchanged if no operand is channels last.
OpSpec InStoredOrder(OpSpec spec);

}  // namespace ckplan
