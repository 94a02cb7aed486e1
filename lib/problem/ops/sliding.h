// Shapes of operators that slide a window over a tensor: convolutions, pooling and Col2Im.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/window.h"

namespace ckplan {

// The shape of Conv and ConvTranspose.
//
// Both are described as a Conv from an image to a map: the image is the input of Conv and the
// output of ConvTranspose, and the map is the output of Conv and the input of ConvTranspose. The
// forward computation of one is the gradient of the other with respect to its input.
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
  // How many planes lie interleaved in memory, element by element: the channels if they lie last,
  // and one plane otherwise.
  int64_t interleaved = 1;
  std::array<WindowAxis, 3> axes;
  bool counts_padding = false;  // Whether a mean also counts the padding.
  // Whether backward reads the index of each maximum in the second output, not in a statistic.
  bool saves_output = false;
  // Whether those indices are column-major: the last axis varies slowest.
  bool is_column_major = false;

  int64_t in() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out() const { return axes[0].out * axes[1].out * axes[2].out; }
  // Whether there is a single window, which covers the whole plane.
  bool is_one_window() const;
};

// The axes of a global pool are merged into one axis with one window. Every window contains at
// least one element of the input.
Result<PoolShape> ReadPoolShape(const OpSpec& spec);

// Col2Im: blocks of an image, stored as columns, are added up where they overlap.
//
//   input   [batch, channels * block, blocks]    column b: the elements of block b
//   output  [batch, channels, image...]          each element: the sum of what falls on it

// An image has one to three axes, and is always treated as one of three axes, with leading axes of
// size 1. Blocks lie on the image like windows: along each axis, WindowAxis::in is the size of the
// image, `kernel` the size of a block, and `out` the number of blocks.
struct Col2ImShape {
  int64_t planes = 1;  // Samples times channels.
  std::array<WindowAxis, 3> axes;

  int64_t image() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t block() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  int64_t blocks() const { return axes[0].out * axes[1].out * axes[2].out; }
};

Result<Col2ImShape> ReadCol2ImShape(const OpSpec& spec);

}  // namespace ckplan
