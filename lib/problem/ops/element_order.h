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
#pragma once

#include <cstdint>
#include <optional>

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

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
