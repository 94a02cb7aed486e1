// The softmax of rows that a warp holds in its registers.
#pragma once

#include "lib/executor/cuda/held_row.h"
#include "lib/executor/cuda/scalar_math.h"

namespace ckplan::cuda {

// The rows of a tensor.
struct RowsOf {
  FloatsIn x;
  int64_t size;
  CKPLAN_DEVICE Float4 Load(int64_t row, int g) const { return x.Load(row * (size / kVector) + g); }
};

// Softmax or LogSoftmax of contiguous rows. `rows`.Load(row, g) returns a group of a row.
template <bool kIsLog, int kGroups, typename Rows>
struct HeldSoftmax {
  int64_t size;
  Rows rows;
  FloatsOut y;
  CKPLAN_KERNEL void operator()(const Team& team, int64_t row) const {
    const HeldGroups<kGroups> groups(team, size);
    const int64_t first = row * (size / kVector);
    HeldRow<kGroups> held = groups.Hold([&](int g) { return rows.Load(row, g); });
    const float highest = groups.Reduce(
        -HUGE_VALF, [&](int k, int lane) { return held.at[k].at[lane]; }, LargerOf());
    groups.ForEach([&](int k, int) {
      CKPLAN_UNROLL
      for (float& value : held.at[k].at) value = kIsLog ? value - highest : Exp(value - highest);
    });
    const float sum = groups.Sum(
        [&](int k, int lane) { return kIsLog ? Exp(held.at[k].at[lane]) : held.at[k].at[lane]; });
    const float last = kIsLog ? logf(sum) : 1 / sum;
    groups.ForEach([&](int k, int g) {
      CKPLAN_UNROLL
      for (float& value : held.at[k].at) value = kIsLog ? value - last : value * last;
      y.Store(first + g, held.at[k]);
    });
  }
};

}  // namespace ckplan::cuda
