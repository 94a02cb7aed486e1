// Loops over a Layout.
#pragma once

#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cpu {

// Walks a part of a layout: calls body(offsets, length) for runs along the inner axis, which
// together are the elements [begin, end) in row-major order. `offsets` has one entry per operand.
template <typename Body>
void WalkRuns(const Layout& layout, int64_t begin, int64_t end, const Body& body) {
  if (begin >= end) return;  // An axis may have no elements.
  const size_t rank = layout.dims.size();
  Dims index(rank, 0);
  Dims offsets(layout.strides.size(), 0);
  int64_t rest = begin;
  for (size_t axis = rank; axis-- > 0;) {
    index[axis] = rest % layout.dims[axis];
    rest /= layout.dims[axis];
    for (size_t k = 0; k < offsets.size(); ++k) {
      offsets[k] += index[axis] * layout.strides[k][axis];
    }
  }
  for (int64_t at = begin; at < end;) {
    const int64_t left = layout.inner() - index[rank - 1];
    const int64_t length = left < end - at ? left : end - at;
    body(static_cast<const int64_t*>(offsets.data()), length);
    at += length;
    if (at >= end) return;
    // Advances to the start of the next row.
    for (size_t k = 0; k < offsets.size(); ++k) {
      offsets[k] -= index[rank - 1] * layout.strides[k][rank - 1];
    }
    index[rank - 1] = 0;
    for (size_t axis = rank - 1; axis-- > 0;) {
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += layout.strides[k][axis];
      if (++index[axis] < layout.dims[axis]) break;
      for (size_t k = 0; k < offsets.size(); ++k) {
        offsets[k] -= layout.dims[axis] * layout.strides[k][axis];
      }
      index[axis] = 0;
    }
  }
}

// Walks the whole layout, divided among the threads.
template <typename Body>
void ForRuns(const Layout& layout, const Body& body) {
  ParallelFor(layout.count(), kGrain,
              [&layout, &body](int64_t begin, int64_t end) { WalkRuns(layout, begin, end, body); });
}

}  // namespace ckplan::cpu
