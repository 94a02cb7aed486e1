// The sliding windows of convolutions and pools, read off attributes and shapes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
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

// One axis of windows.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;

  // Positions [first, last) of the kernel that fall on the input, at this output position.
  int64_t origin(int64_t o) const { return o * stride - begin; }
  int64_t first(int64_t o) const {
    return origin(o) >= 0 ? 0 : (-origin(o) + dilation - 1) / dilation;
  }
  int64_t last(int64_t o) const {
    const int64_t room = in - origin(o);
    return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
  }
  // Output positions [first, last) whose window has position k of the kernel on the input.
  int64_t first_out(int64_t k) const {
    const int64_t reach = begin - k * dilation;
    return reach <= 0 ? 0 : std::min(out, (reach + stride - 1) / stride);
  }
  int64_t last_out(int64_t k) const {
    const int64_t room = in + begin - k * dilation;
    return room <= 0 ? 0 : std::min(out, (room + stride - 1) / stride);
  }
  // Output position whose window has position k of the kernel on this input; -1 for none.
  int64_t output_of(int64_t input, int64_t k) const {
    const int64_t reach = input + begin - k * dilation;
    return reach >= 0 && reach % stride == 0 && reach / stride < out ? reach / stride : -1;
  }
  // Positions of the kernel that fall on the input or its padding: a window that ceil_mode adds may
  // reach beyond.
  int64_t padded(int64_t o) const {
    const int64_t room = in + end - origin(o);
    return std::min(kernel, (room + dilation - 1) / dilation);
  }
  // Positions that a mean is taken over; at least 1.
  int64_t count(int64_t o, bool counts_padding) const {
    return std::max<int64_t>(counts_padding ? padded(o) : last(o) - first(o), 1);
  }
};

// Of at most three axes; those that lack are leading ones of size 1.
std::array<WindowAxis, 3> ThreeAxes(const Window& window);

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

// Windows of an operator that has neither auto_pad nor a tensor whose axes they give: `out` is
// what `in`, `kernel` and the attributes strides, dilations and pads make. `in` has the spatial
// axes alone. Refuses what ReadWindow refuses of these, and kernels that are not positive or have
// not one entry for each axis; messages call the kernel `kernel_name`.
Result<Window> ReadWindowsOver(const OpSpec& spec, const Dims& in, const Dims& kernel,
                               std::string_view kernel_name);

}  // namespace ckplan
