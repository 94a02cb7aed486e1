// Copies between tensors with different axis orders: transposes, slices, tiles.
#pragma once

#include <cstring>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cpu {

// Loops over a Layout.

// Walks a part of a layout: calls body(offsets, length) for runs along the inner axis that together
// are the elements [begin, end) in row-major order. `offsets` has one entry per operand.
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

// Calls body with the unsigned integer type of the given size: copies preserve every bit.
template <typename Body>
void WithElementOf(int64_t bytes, const Body& body) {
  if (bytes == 1) {
    body(uint8_t{});
  } else if (bytes == 4) {
    body(uint32_t{});
  } else {
    body(uint64_t{});
  }
}

inline void CopyBytes(void* to, const void* from, int64_t bytes) {
  ParallelFor(bytes, 4 * kGrain, [=](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

inline void ZeroBytes(void* to, int64_t bytes) {
  ParallelFor(bytes, 4 * kGrain, [=](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(to) + begin, 0, static_cast<size_t>(end - begin));
  });
}

// Copies to[to_base + Σ i_a to_strides[a]] = from[from_base + Σ i_a from_strides[a]] for every
// index i with i_a < dims[a]. No element is written twice. Strides may be negative and, in `from`,
// 0.
class StridedCopy {
 public:
  StridedCopy() = default;
  StridedCopy(const Dims& dims, const Dims& from_strides, int64_t from_base, const Dims& to_strides,
              int64_t to_base = 0);

  void Run(const void* from, void* to, int64_t element_bytes) const;
  StridedCopy Reversed() const;
  const Layout& layout() const { return layout_; }  // The operands are `from` and `to`.

 private:
  // Tensors with different inner axes are copied in square blocks.
  static constexpr int64_t kSquare = 32;

  void FindSquares();
  template <typename T>
  void RunRows(const T* from, T* to) const;
  template <typename T>
  void RunSquares(const T* from, T* to) const;

  Layout layout_;
  int64_t from_base_ = 0, to_base_ = 0;
  bool has_squares_ = false;
  Layout outer_;  // All axes except the squares' two.
  int64_t rows_ = 1, from_row_ = 0, to_row_ = 0;
};

}  // namespace ckplan::cpu
