// A tensor of the reference: every value a double, which holds float32, int32 and the integers of
// tests exactly. Nothing here is fast; everything is plain.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ops/op_spec.h"

namespace ckplan::reference {

struct Tensor {
  bool is_present = false;  // All else is empty where it is not.
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;
  std::vector<double> values;  // Row-major.

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  int64_t dim(int64_t axis) const { return dims[static_cast<size_t>(axis)]; }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
};

using Index = std::vector<int64_t>;

// Steps `index` to the next element of a tensor of these dimensions, row-major. False after the
// last one.
inline bool NextIndex(Index& index, const std::vector<int64_t>& dims) {
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (++index[axis] < dims[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

// Position of the element; an axis where the tensor has 1 element is read at 0, and leading axes
// that the tensor lacks are skipped: broadcasting.
inline int64_t Offset(const Tensor& tensor, const Index& index) {
  const size_t skipped = index.size() - tensor.dims.size();
  int64_t offset = 0;
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
    const int64_t at = tensor.dims[axis] == 1 ? 0 : index[axis + skipped];
    offset = offset * tensor.dims[axis] + at;
  }
  return offset;
}

// Calls body(index, i) for every element of a tensor of these dimensions, i counting them.
template <typename Body>
void ForEach(const std::vector<int64_t>& dims, const Body& body) {
  for (const int64_t dim : dims) {
    if (dim == 0) return;
  }
  Index index(dims.size(), 0);
  int64_t i = 0;
  do {
    body(static_cast<const Index&>(index), i++);
  } while (NextIndex(index, dims));
}

}  // namespace ckplan::reference
