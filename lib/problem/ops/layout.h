// How several tensors are traversed together: the axes of the result, and how far each operand
// moves along each of them. Neighbouring axes that every operand can traverse as one are merged, so
// that contiguous or broadcast parts become one long inner loop:
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
// Returns, for each axis of a row-major tensor, the distance in elements from one index to the
// next.
Dims RowMajorStrides(const Dims& dims);
// Returns the strides with which a tensor of shape `dims` is read as if it had shape `to`: 0 along
// axes that the tensor lacks or in which its size is 1.
Dims BroadcastStrides(const Dims& dims, const Dims& to);

struct Layout {
  Dims dims;                  // There is at least one axis.
  std::vector<Dims> strides;  // For each operand and each axis, in elements.

  int64_t count() const { return Product(dims); }
  int64_t inner() const { return dims.back(); }
  int64_t inner_stride(size_t operand) const { return strides[operand].back(); }
};

// Drops axes of size 1 and merges axes that can be traversed as one.
Layout Collapse(const Dims& dims, const std::vector<Dims>& strides);
// Returns the layout of operands that are broadcast to `dims`. The result itself is added as the
// last operand.
Layout BroadcastLayout(const Dims& dims, const std::vector<Dims>& operands);

// Reads axes and small integer operands, which are attributes in some opsets and inputs in others.

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

// A tensor seen as samples x channels x positions, for operators that treat each channel
// separately. If the channels lie last, each position is a sample.
struct ChannelView {
  int64_t samples = 1, channels = 1, positions = 1;

  // Index of the first element of `channel` in `sample`.
  int64_t offset(int64_t sample, int64_t channel) const {
    return (sample * channels + channel) * positions;
  }
  int64_t channel_size() const { return samples * positions; }
};

// The order of the elements of a tensor of four axes in memory.
//
//   of the model    [N, C, H, W], row by row
//   channels last   the same tensor as [N, H, W, C], row by row: Operand::is_channels_last
//
// Tensors of one channel, or of one position, have one order either way, and are not marked.
//
// Most operators need not know about orders. An elementwise operator, a Concat or a Slice whose
// tensors all have the channels last is the same operator on tensors of the axes in memory;
// InStoredOrder describes it so. The others read the mark of each operand.

// In which orders a backend's operator takes its tensors of four axes.
enum class ElementOrders : uint8_t {
  kOfModel,  // As in the model.
  kAlike,    // All of them in the same order, whichever it is.
  // Its first input and its first output each in an order of its own, the others as in the model.
  // The operator is quicker with the channels last.
  kEach,
};

// Whether a tensor has the same order either way. Missing axes are leading ones.
bool HasOneOrder(const Dims& dims);
// Returns the dimensions as they lie in memory.
Dims StoredDims(const Operand& operand);

// Returns whether InStoredOrder can describe this operator if each of its tensors has its channels
// last or one order.
bool HasStoredOrder(const OpSpec& spec);
// Returns the operator on tensors as they lie in memory, none of which is marked; the spec as it is
// if no operand is marked.
OpSpec InStoredOrder(OpSpec spec);

}  // namespace ckplan
