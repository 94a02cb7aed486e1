// How several tensors are traversed together: the axes of the result, and how far each operand
// moves along each of them. Neighbouring axes that every operand can traverse as one are merged, so
// that contiguous or broadcast parts become one long inner loop:
//
//   [8,64,56,56] + [64,1,1]   becomes   dims {8, 64, 3136}, strides {200704, 3136, 1} {0, 1, 0}
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

}  // namespace ckplan
