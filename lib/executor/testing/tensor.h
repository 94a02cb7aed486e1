// A tensor of the reference. Every value is a double, which represents float32, int32 and the
// tests' integers exactly. The code favours simplicity over speed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/problem/ops/op_spec.h"

namespace ckplan::reference {

struct Tensor {
  bool is_present = false;  // If false, all other members are empty.
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

// Advances `index` to the next element in row-major order; returns false after the last one.
inline bool NextIndex(Index& index, const std::vector<int64_t>& dims) {
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (++index[axis] < dims[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

// Returns an element's offset under broadcasting: axes of size 1 are read at 0, and leading axes
// that the tensor lacks are skipped.
inline int64_t Offset(const Tensor& tensor, const Index& index) {
  const size_t skipped = index.size() - tensor.dims.size();
  int64_t offset = 0;
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
    const int64_t at = tensor.dims[axis] == 1 ? 0 : index[axis + skipped];
    offset = offset * tensor.dims[axis] + at;
  }
  return offset;
}

// Calls body(index, i) for every element of a tensor of these dimensions; i counts from 0.
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

// What each operator computes, in double precision and as simply as possible. Tests compare the
// backends' kernels with it. It shares no code with them, and only tests link it.

// Computes the present outputs. Their types and dimensions are set, and their values are zeros. The
// cases ensure consistent shapes.
using Function = void (*)(const OpSpec& spec, std::span<const Tensor> inputs,
                          std::span<Tensor> outputs);

struct FunctionRow {
  std::string_view type;
  Function function = nullptr;
};

// Converts the doubles of a tensor to integers.

// A slice may end at the largest int64, which as a double is one larger and doesn't fit.
inline int64_t ToInteger(double value) {
  constexpr double kBeyond = 9223372036854775808.0;
  return value < kBeyond ? static_cast<int64_t>(value) : INT64_MAX;
}

}  // namespace ckplan::reference
