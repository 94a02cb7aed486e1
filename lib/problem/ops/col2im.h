// Col2Im: blocks of an image, stored as columns, are added up where they overlap.
//
//   input   [batch, channels * block, blocks]    column b: the elements of block b
//   output  [batch, channels, image...]          each element: the sum of what falls on it
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/window.h"

namespace ckplan {

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
