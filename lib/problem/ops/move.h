// Shapes of operators that move elements: views, transpositions, slices, joins and reversals.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

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

// Concat and Split: tensors that are joined along an axis.
//
// The joined tensor is `rows` rows of row_size elements, and each part owns a piece of every row:
//
//   Concat of [2,3] and [2,4] along axis 1:   row 0: aaabbbb   row 1: aaabbbb
struct JoinShape {
  int64_t rows = 1, row_size = 0;
  // For each part: where its piece of a row begins, and the number of elements in it. The piece of
  // an absent part has size 0.
  std::vector<int64_t> begin, size;
};

Result<JoinShape> ReadConcatShape(const OpSpec& spec);  // The parts are the inputs.
Result<JoinShape> ReadSplitShape(const OpSpec& spec);   // The parts are the outputs.

// ReverseSequence: reverses the first elements of each sequence and leaves the rest as it is.

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
