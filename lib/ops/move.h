// Operators that put each element of the input in one or more places of the output: transposes,
// slices, blocks, repetitions, and views where a graph keeps them as nodes.
//
// All of them are one copy: the output is walked in its order, as a tensor of the axes `dims`, and
// the element at index i comes from place base + Σ i_a strides[a] of the input.
//
//   Transpose of [2,3]         dims {3, 2}      strides {1, 3}
//   Slice [2:0:-1] of [3,4]    dims {2, 4}      strides {-4, 1}     base 8
//   Tile of [2] by 3           dims {3, 2}      strides {0, 1}
#pragma once

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct MoveShape {
  Dims dims;         // Their product is the number of elements of the output.
  Dims strides;      // Elements of the input; may be negative. 0 along repetitions.
  int64_t base = 0;  // Index of the element of the input that the output begins with.
};

// No element of the input is in two places of the output.
Result<MoveShape> ReadMoveShape(const OpSpec& spec);
// Expand and Tile: the places of an element of the input are those along the strides of 0.
Result<MoveShape> ReadRepeatShape(const OpSpec& spec);

}  // namespace ckplan
