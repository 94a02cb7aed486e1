// Shapes of operators that slide a window over a tensor: convolutions, pooling and Col2Im.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Each vector has one entry per spatial axis. Output position o covers the input positions
// o * stride - begin + i * dilation.
struct Window {
  std::vector<int64_t> in, out, kernel, strides, dilations, begin, end;

  size_t rank() const { return in.size(); }
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

// The windows along one axis.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;

  // The kernel positions [first, last) that lie on the input, for the window at output position o.
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
  // The output position whose window has kernel position k on this input position, or -1.
  int64_t output_of(int64_t input, int64_t k) const {
    const int64_t reach = input + begin - k * dilation;
    return reach >= 0 && reach % stride == 0 && reach / stride < out ? reach / stride : -1;
  }
  // The number of kernel positions on the input or its padding. It can be smaller than the kernel,
  // since a window that ceil_mode adds may reach beyond the padding.
  int64_t padded(int64_t o) const {
    const int64_t room = in + end - origin(o);
    return std::min(kernel, (room + dilation - 1) / dilation);
  }
  // The divisor of a mean: the number of positions, at least 1.
  int64_t count(int64_t o, bool counts_padding) const {
    return std::max<int64_t>(counts_padding ? padded(o) : last(o) - first(o), 1);
  }
};

// Adds leading axes of size 1 to `window`, which has at most three axes.
std::array<WindowAxis, 3> ThreeAxes(const Window& window);

// Returns `windows`, minus one if the last window would begin in the padding after the input.
// PyTorch and ONNX Runtime drop such a window of ceil_mode in every opset; ONNX's shape inference
// only since opset 22.
int64_t DropWindowInPadding(int64_t windows, int64_t stride, int64_t in, int64_t begin);

enum class WindowKind { kConvolution, kTransposed, kPool };

// Reads the windows that slide over `in` to compute `out`. Both are tensors of the same rank whose
// first two axes are not spatial. `kernel` is the kernel's shape according to the weights; it is
// empty for pools, which require the attribute kernel_shape. For a transposed convolution, `in` is
// its output and `out` its input.
//
// kInvalidInput: attributes that are not positive or do not have one entry per axis; a kernel that
// differs from the weights; a window larger than the padded input; an output size that does not
// match the windows. kUnsupported: sizes beyond kMaxLibrarySize, and output_padding as large as the
// stride.
Result<Window> ReadWindow(const OpSpec& spec, const Operand& in, const Operand& out,
                          const Dims& kernel, WindowKind kind);

// Like ReadWindow, for an operator without auto_pad whose output size is not known: computes `out`
// from `in`, `kernel` and the attributes strides, dilations and pads. `in` has only the spatial
// axes. kInvalidInput: also a kernel that is not positive or does not have one entry per axis;
// messages call it `kernel_name`.
Result<Window> ReadWindowsOver(const OpSpec& spec, const Dims& in, const Dims& kernel,
                               std::string_view kernel_name);

// The shape of Conv and ConvTranspose.
//
// Both are described as a Conv from an image to a map. The image is the input of Conv and the
// output of ConvTranspose; the map is the other one. The forward computation of one operator is the
// other's gradient with respect to its input.
struct ConvShape {
  bool is_transposed = false;
  bool has_bias = false;  // One value for each output channel.
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1;   // The image is [batch, in_channels, window.in...].
  int64_t out_channels = 1;  // The weights are [out_channels, in_channels / groups, kernel...].
  Window window;             // From the image to the map; one to three axes.
};

Result<ConvShape> ReadConvShape(const OpSpec& spec);

// Pools over one to three spatial axes, always treated as three, with leading axes of size 1.
struct PoolShape {
  int64_t planes = 1;  // Samples times channels.
  // The number of planes interleaved in memory, element by element: all channels if they are the
  // last axis, otherwise 1.
  int64_t interleaved = 1;
  std::array<WindowAxis, 3> axes;
  bool counts_padding = false;  // A mean also counts the padding.
  // Backward reads the indices of the maxima from the second output, not from a statistic.
  bool saves_output = false;
  // These indices are column-major: the last axis varies slowest.
  bool is_column_major = false;

  int64_t in() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out() const { return axes[0].out * axes[1].out * axes[2].out; }
  // Returns true if a single window covers the whole plane.
  bool is_one_window() const;
};

// Merges the axes of a global pool into one axis with one window. Checks that every window contains
// an element of the input.
Result<PoolShape> ReadPoolShape(const OpSpec& spec);

// Col2Im adds up overlapping blocks of an image, which are stored as columns.
//
//   input   [batch, channels * block, blocks]    column b: the elements of block b
//   output  [batch, channels, image...]          each element: the sum over the blocks on it
//
// An image has one to three axes; missing axes become leading axes of size 1. Blocks lie on the
// image like windows: along each axis, WindowAxis::in is the size of the image, `kernel` the size
// of a block, and `out` the number of blocks.
struct Col2ImShape {
  int64_t planes = 1;  // Samples times channels.
  std::array<WindowAxis, 3> axes;

  int64_t image() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t block() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t blocks() const { return axes[0].out * axes[1].out * axes[2].out; }
};

Result<Col2ImShape> ReadCol2ImShape(const OpSpec& spec);

}  // namespace ckplan
