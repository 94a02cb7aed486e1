// Pools over one to three spatial axes, always treated as three, with leading axes of size 1.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/window.h"

namespace ckplan {

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

}  // namespace ckplan
