// The sliding windows of convolutions and pools, read off attributes and shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// By spatial axis. Output position o covers the input positions o * stride - begin + i * dilation.
struct Window {
  std::vector<int64_t> in, out, kernel, strides, dilations, begin, end;

  size_t rank() const { return in.size(); }
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

enum class WindowKind { kConvolution, kTransposed, kPool };

// `in` and `out` are tensors of two leading axes and the same rank; `kernel` is what the weights
// have, empty for pools, whose attribute kernel_shape is required. For a transposed convolution,
// `in` is its output and `out` its input.
//
// kInvalidInput: attributes that are not positive or have not one entry for each axis; kernels
// that differ from the weights; windows larger than what they slide over; and outputs of another
// size than the windows give. kUnsupported: sizes beyond kMaxLibrarySize, and output_padding as
// large as the stride.
Result<Window> ReadWindow(const OpSpec& spec, const Operand& in, const Operand& out,
                          const Dims& kernel, WindowKind kind);

}  // namespace ckplan
