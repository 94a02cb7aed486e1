// Operators that copy each element of the input to one or more places of the output: transposes,
// slices, blocks, repetitions, and views where a graph keeps them as nodes.
//
// All of them are one kind of copy: the output is traversed in its own order as a tensor with axes
// `dims`, and the element at index i is read from the position base + Σ i_a strides[a] of the
// input.
//
//   Transpose of [2,3]         dims {3, 2}      strides {1, 3}
//   Slice [2:0:-1] of [3,4]    dims {2, 4}      strides {-4, 1}     base 8
//   Tile of [2] by 3           dims {3, 2}      strides {0, 1}
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct MoveShape {
  Dims dims;  // Their product is the number of elements of the output.
  // Distances in elements of the input; may be negative, and are 0 along repetitions.
  Dims strides;
  int64_t base = 0;  // Position in the input of the output's first element.
};

// For operators that copy no element of the input to more than one place of the output.
Result<MoveShape> ReadMoveShape(const OpSpec& spec);
// For Expand and Tile: an element of the input is copied to all places along the axes of stride 0.
Result<MoveShape> ReadRepeatShape(const OpSpec& spec);

}  // namespace ckplan
