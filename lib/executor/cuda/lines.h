// Work on the lines of a tensor along one of its axes: softmax, norms, maxima and minima.
//
// A line whose elements are contiguous is processed by a team. If the lines are interleaved, and
// there are enough of them, each is processed by one thread, so that neighbouring threads read
// neighbouring elements.
#pragma once

#include "lib/executor/cuda/index.h"
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

// The offsets of the elements of one line.
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

}  // namespace ckplan::cuda
