// Shapes of operators that move elements: views, transpositions, slices, joins and reversals.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Operators that copy elements of the input: transposes, slices, blocks, repetitions, and views
// that the graph has as nodes.
//
// All of them do the same copy: for each index i of a row-major tensor with axes `dims`, the
// output's next element is the input's element at position base + Σ i_a strides[a].
//
//   Transpose of [2,3]         dims {3, 2}      strides {1, 3}
//   Slice [2:0:-1] of [3,4]    dims {2, 4}      strides {-4, 1}     base 8
//   Tile of [2] by 3           dims {3, 2}      strides {0, 1}
struct MoveShape {
  Dims dims;  // Their product is the number of output elements.
  // Strides in the input, in elements; negative for reversed axes, 0 for repeated ones.
  Dims strides;
  int64_t base = 0;  // The input position of the output's first element.
};

// For operators that copy each element of the input at most once.
Result<MoveShape> ReadMoveShape(const OpSpec& spec);
// For Expand and Tile, which repeat elements along the axes of stride 0.
Result<MoveShape> ReadRepeatShape(const OpSpec& spec);

// Concat and Split join tensors along an axis. The joined tensor has `rows` rows of row_size
// elements, and each part has a piece of every row:
//
//   Concat of [2,3] and [2,4] along axis 1:   row 0: aaabbbb   row 1: aaabbbb
struct JoinShape {
  int64_t rows = 1, row_size = 0;
  // The first element and the size of each part's piece of a row. An absent part has size 0.
  std::vector<int64_t> begin, size;
};

Result<JoinShape> ReadConcatShape(const OpSpec& spec);  // The parts are the inputs.
Result<JoinShape> ReadSplitShape(const OpSpec& spec);   // The parts are the outputs.

// ReverseSequence reverses the first elements of each sequence and copies the rest. The tensor is
// outer x middle x inner: the time axis and the batch axis in either order, then all other axes.
struct ReverseShape {
  int64_t outer = 1, middle = 1, inner = 1;
  bool is_time_first = true;

  // The maximum length of a sequence.
  int64_t length() const { return is_time_first ? outer : middle; }
};

Result<ReverseShape> ReadReverseShape(const OpSpec& spec);

}  // namespace ckplan
