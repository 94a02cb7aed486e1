// Pools of one to three spatial axes, all seen as pools of three, the leading ones of size 1.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"
#include "lib/ops/window.h"

namespace ckplan {

struct PoolShape {
  int64_t planes = 1;  // Samples times channels.
  std::array<WindowAxis, 3> axes;
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
