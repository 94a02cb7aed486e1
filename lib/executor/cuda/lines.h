// Work on a tensor's lines along one of its axes: softmax, norms, maxima and minima.
//
// A team processes a line with contiguous elements. If there are enough interleaved lines, one
// thread processes each, so that neighbouring threads read neighbouring elements. A short line fits
// in registers: RegisterRow.
#pragma once

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

// A single thread with the interface of a Team.
class Alone {
 public:
  CKPLAN_KERNEL bool IsFirst() const { return true; }
  template <typename Body>
  CKPLAN_KERNEL void ForEach(int64_t count, const Body& body) const {
    for (int64_t i = 0; i < count; ++i) body(i);
  }
  template <typename Value, typename MapTo, typename Combine>
  CKPLAN_KERNEL Value Reduce(int64_t count, Value identity, const MapTo& map,
                             const Combine& combine) const {
    Value value = identity;
    for (int64_t i = 0; i < count; ++i) value = combine(value, map(i));
    return value;
  }
  template <typename MapTo>
  CKPLAN_KERNEL float Sum(int64_t count, const MapTo& map) const {
    return Reduce(count, 0.0F, map, SumOf());
  }
};

// The offsets of one line's elements.
struct Line {
  int64_t index, first, step;
  CKPLAN_DEVICE int64_t operator[](int64_t i) const { return first + i * step; }
};

namespace detail {

template <typename Body>
struct LineBody {
  Divider inner;
  int64_t size;
  Body body;
  CKPLAN_KERNEL Line Find(int64_t index) const {
    int64_t place = index;
    const int64_t outer = inner.Split(place);
    return {index, outer * size * inner.divisor() + place, inner.divisor()};
  }
  CKPLAN_KERNEL void operator()(const Team& team, int64_t index) const { body(team, Find(index)); }
  CKPLAN_KERNEL void operator()(int64_t index) const { body(Alone(), Find(index)); }
};

}  // namespace detail

// Calls body(team, line) for each line of the view. `body` is a functor whose operator() is a
// template over the team: Team or Alone.
template <typename Body>
void ForLines(Device& device, const AxisView& view, const Body& body) {
  constexpr int64_t kEnoughLines = 4096;
  constexpr int64_t kShort = 64;
  constexpr int64_t kNeighbours = 8;  // Elements in 32 bytes, the smallest memory access.
  const int64_t lines = view.outer * view.inner;
  if (lines <= 0) return;
  const detail::LineBody<Body> each{Divider(view.inner), view.size, body};
  const bool are_side_by_side = view.inner >= kNeighbours;
  if (are_side_by_side && (lines >= kEnoughLines || view.size <= kShort)) {
    ForEach(device, lines, each);
  } else {
    ForRows(device, lines, view.size, each);
  }
}

// Rows in a warp's registers. Each element is read once, in accesses of 16 bytes of float32 or 8 of
// bfloat16, however often a kernel uses it.
//
//   thread 0 holds groups 0, 32, 64, ...; thread 1 groups 1, 33, 65, ... of kVector elements
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

  // Calls body(k, g) for each group g of the thread; g is its k-th group.
  template <typename Body>
  CKPLAN_KERNEL void ForEach(const Body& body) const {
    CKPLAN_UNROLL
    for (int k = 0; k < kGroups; ++k) {
      const int g = team_.rank() + k * kWarpTeam;
      if (g < groups_) body(k, g);
    }
  }

  // Loads load(g) for each group g.
  template <typename Load>
  CKPLAN_KERNEL RegisterRow<kGroups> Hold(const Load& load) const {
    RegisterRow<kGroups> row{};
    ForEach([&](int k, int g) { row.at[k] = load(g); });
    return row;
  }

  // Combines map(k, lane) over all elements of the row, in an order that depends only on its
  // length.
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

// Softmax of rows in a warp's registers.

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
