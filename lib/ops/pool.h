// Pools of one to three spatial axes, all seen as pools of three, the leading ones of size 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct PoolAxis {
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

struct PoolShape {
  int64_t planes = 1;  // Samples times channels.
  std::array<PoolAxis, 3> axes;
  bool counts_padding = false;   // A mean is taken over the padding, too.
  bool saves_output = false;     // The second output says where in its plane each maximum was.
  bool is_column_major = false;  // Those places are counted with the last axis outermost.

  int64_t in() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out() const { return axes[0].out * axes[1].out * axes[2].out; }
  // There is one window, and all of the plane lies in it.
  bool is_one_window() const;
};

// The axes of a global pool are one, and it has one window. Every window has an element of the
// input.
Result<PoolShape> ReadPoolShape(const OpSpec& spec);

}  // namespace ckplan
