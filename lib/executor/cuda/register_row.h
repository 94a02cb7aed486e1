// Rows that a warp holds in its registers, so that each element is read once, by accesses of 16
// bytes of float32 or 8 of bfloat16, however often a kernel looks at it.
//
//   thread 0 holds groups 0, 32, 64, ...; thread 1 groups 1, 33, 65, ... of kVector elements
#pragma once

#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"

namespace ckplan::cuda {

static_assert(kHoldingThreads == kWarpTeam);

template <int kGroups>
struct RegisterRow {
  Float4 at[kGroups];
};

// The groups of one thread of the team.
template <int kGroups>
class RegisterGroups {
 public:
  CKPLAN_KERNEL RegisterGroups(const Team& team, int64_t size)
      : team_(team), groups_(static_cast<int>(size / kVector)) {}

  // Calls body(k, g) for each group g of the thread, which it holds as its k-th.
  template <typename Body>
  CKPLAN_KERNEL void ForEach(const Body& body) const {
    CKPLAN_UNROLL
    for (int k = 0; k < kGroups; ++k) {
      const int g = team_.rank() + k * kWarpTeam;
      if (g < groups_) body(k, g);
    }
  }

  // Holds load(g) for each group g.
  template <typename Load>
  CKPLAN_KERNEL RegisterRow<kGroups> Hold(const Load& load) const {
    RegisterRow<kGroups> row{};
    ForEach([&](int k, int g) { row.at[k] = load(g); });
    return row;
  }

  // Combines map(k, lane) of all elements of the row, in an order that depends on its length alone.
  template <typename Value, typename MapTo, typename Combine>
  CKPLAN_KERNEL Value Reduce(Value identity, const MapTo& map, const Combine& combine) const {
    Value own = identity;
    ForEach([&](int k, int) {
      CKPLAN_UNROLL
      for (int lane = 0; lane < kVector; ++lane) own = combine(own, map(k, lane));
    });
    return team_.Reduce(
        kWarpTeam, identity, [&](int64_t) { return own; }, combine);
  }
  template <typename MapTo>
  CKPLAN_KERNEL float Sum(const MapTo& map) const {
    return Reduce(0.0F, map, SumOf());
  }

 private:
  const Team& team_;
  int groups_;
};

// The softmax of rows that a warp holds in its registers.

// The rows of a tensor.
struct RowsOf {
  FloatsIn x;
  int64_t size;
  CKPLAN_DEVICE Float4 Load(int64_t row, int g) const { return x.Load(row * (size / kVector) + g); }
};

// Softmax or LogSoftmax of contiguous rows. `rows`.Load(row, g) returns a group of a row.
template <bool kIsLog, int kGroups, typename Rows>
struct RegisterSoftmax {
  int64_t size;
  Rows rows;
  FloatsOut y;
  CKPLAN_KERNEL void operator()(const Team& team, int64_t row) const {
    const RegisterGroups<kGroups> groups(team, size);
    const int64_t first = row * (size / kVector);
    RegisterRow<kGroups> held = groups.Hold([&](int g) { return rows.Load(row, g); });
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
