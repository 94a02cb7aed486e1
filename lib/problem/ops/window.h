// The sliding windows of convolutions and pools, computed from attributes and shapes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Every vector has one entry for each spatial axis. Output position o covers the input positions
// o * stride - begin + i * dilation.
struct Window {
  std::vector<int64_t> in, out, kernel, strides, dilations, begin, end;

  size_t rank() const { return in.size(); }
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

// The windows along one axis.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;

  // The kernel's positions [first, last) that lie on the input for the window at output position o.
  int64_t origin(int64_t o) const { return o * stride - begin; }
  int64_t first(int64_t o) const {
    return origin(o) >= 0 ? 0 : (-origin(o) + dilation - 1) / dilation;
  }
  int64_t last(int64_t o) const {
    const int64_t room = in - origin(o);
    return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
  }
  // The output positions [first, last) whose window has kernel position k on the input.
  int64_t first_out(int64_t k) const {
    const int64_t reach = begin - k * dilation;
    return reach <= 0 ? 0 : std::min(out, (reach + stride - 1) / stride);
  }
  int64_t last_out(int64_t k) const {
    const int64_t room = in + begin - k * dilation;
    return room <= 0 ? 0 : std::min(out, (room + stride - 1) / stride);
  }
  // The output position whose window has kernel position k on this input position; -1 if none has.
  int64_t output_of(int64_t input, int64_t k) const {
    const int64_t reach = input + begin - k * dilation;
    return reach >= 0 && reach % stride == 0 && reach / stride < out ? reach / stride : -1;
  }
  // The number of kernel positions that lie on the input or its padding. It can be smaller than the
  // kernel, since a window that ceil_mode adds may reach beyond the padding.
  int64_t padded(int64_t o) const {
    const int64_t room = in + end - origin(o);
    return std::min(kernel, (room + dilation - 1) / dilation);
  }
  // The number of positions that a mean is taken over; at least 1.
  int64_t count(int64_t o, bool counts_padding) const {
    return std::max<int64_t>(counts_padding ? padded(o) : last(o) - first(o), 1);
  }
};

// `window` has at most three axes; missing ones become leading axes of size 1.
std::array<WindowAxis, 3> ThreeAxes(const Window& window);

// Returns how many of the `windows` that ceil_mode gives an axis a pool has. One that begins in the
// padding after the input is dropped: PyTorch and ONNX Runtime do so in every operator set, and
// ONNX's own shapes since set 22.
int64_t WithoutWindowInPadding(int64_t windows, int64_t stride, int64_t in, int64_t begin);

enum class WindowKind { kConvolution, kTransposed, kPool };

// Reads the windows with which the operator slides over `in` to make `out`. Both are tensors of the
// same rank whose first two axes are not spatial. `kernel` is the kernel's shape according to the
// weights; it is empty for pools, whose attribute kernel_shape is required. For a transposed
// convolution, `in` is its output and `out` its input.
//
// kInvalidInput: attributes that are not positive or do not have one entry for each axis; kernels
// that differ from the weights; windows larger than what they slide over; and outputs whose size is
// not the one that the windows give. kUnsupported: sizes beyond kMaxLibrarySize, and output_padding
// as large as the stride.
Result<Window> ReadWindow(const OpSpec& spec, const Operand& in, const Operand& out,
                          const Dims& kernel, WindowKind kind);

// Reads the windows of an operator that has no auto_pad and no tensor with one axis for each axis
// of the windows: `out` is computed from `in`, `kernel` and the attributes strides, dilations and
// pads. `in` has only the spatial axes. Returns ReadWindow's errors about these attributes, and
// kInvalidInput for kernels that are not positive or do not have one entry for each axis. Messages
// call the kernel `kernel_name`.
Result<Window> ReadWindowsOver(const OpSpec& spec, const Dims& in, const Dims& kernel,
                               std::string_view kernel_name);

}  // namespace ckplan
