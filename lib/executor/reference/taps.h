// Weighted sums of a few elements along each axis.
#pragma once

#include <algorithm>
#include <cmath>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

struct Tap {
  int64_t index;
  double weight;
};

// The taps of one index of the output's axis. If there are none, the element gets a fill value.
using Taps = std::vector<Tap>;

// Returns the weighted sum over all combinations of the axes' taps.
inline double Combine(const Tensor& x, const std::vector<const Taps*>& taps, size_t axis,
                      int64_t offset) {
  if (axis == taps.size()) return x[offset];
  double sum = 0;
  for (const Tap& tap : *taps[axis]) {
    sum += tap.weight * Combine(x, taps, axis + 1, offset * x.dims[axis] + tap.index);
  }
  return sum;
}

inline void Apply(const Tensor& x, const std::vector<std::vector<Taps>>& axes, double fill,
                  Tensor& y) {
  ForEach(y.dims, [&](const Index& index, int64_t i) {
    std::vector<const Taps*> taps;
    bool has_all = true;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      taps.push_back(&axes[axis][static_cast<size_t>(index[axis])]);
      has_all = has_all && !taps.back()->empty();
    }
    y[i] = has_all ? Combine(x, taps, 0, 0) : fill;
  });
}

}  // namespace ckplan::reference
