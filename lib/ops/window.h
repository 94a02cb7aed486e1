// The sliding windows of convolutions and pools, read off attributes and shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// By spatial axis. Output position o covers the input positions o * stride - begin + i * dilation.
struct Window {
  std::vector<int64_t> in, out, kernel, strides, dilations, begin, end;

  size_t rank() const { return in.size(); }
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

// `in` and `out` are tensors of two leading axes; `kernel` is used where the attribute
// kernel_shape is absent. For a transposed convolution, `in` is its output and `out` its input.
Window ReadWindow(const OpSpec& spec, const Operand& in, const Operand& out,
                  const std::vector<int64_t>& kernel, bool is_transposed = false);

}  // namespace ckplan
