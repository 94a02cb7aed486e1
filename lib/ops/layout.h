// How several tensors are walked together: the axes of a result, and how far each operand moves
// along each of them. Axes that all operands pass alike are merged, so that what is contiguous, or
// broadcast, is one long inner loop:
//
//   [8,64,56,56] + [64,1,1]   becomes   dims {8, 64, 3136}, strides {200704, 3136, 1} {0, 1, 0}
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ckplan {

using Dims = std::vector<int64_t>;

int64_t Product(const Dims& dims);
// For each axis of a row-major tensor: the elements from one index to the next.
Dims RowMajorStrides(const Dims& dims);
// Strides of a tensor that is broadcast to `to`: 0 along axes that it lacks or that have size 1.
Dims BroadcastStrides(const Dims& dims, const Dims& to);

struct Layout {
  Dims dims;                  // At least one.
  std::vector<Dims> strides;  // By operand, then axis; elements.

  int64_t count() const { return Product(dims); }
  int64_t inner() const { return dims.back(); }
  int64_t inner_stride(size_t operand) const { return strides[operand].back(); }
};

// Drops axes of one element and merges the rest.
Layout Collapse(const Dims& dims, const std::vector<Dims>& strides);
// For operands that are broadcast to `dims`; the result itself is added as the last operand.
Layout BroadcastLayout(const Dims& dims, const std::vector<Dims>& operands);

}  // namespace ckplan
