#include "lib/executor/cpu/strided_copy.h"

#include <algorithm>

namespace ckplan::cpu {

namespace {

template <typename T>
void CopyRun(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t length) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(length) * sizeof(T));
  } else if (from_stride == 0 && to_stride == 1) {
    std::fill_n(to, length, *from);
  } else {
    for (int64_t i = 0; i < length; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

}  // namespace

StridedCopy::StridedCopy(const Dims& dims, const Dims& from_strides, int64_t from_base,
                         const Dims& to_strides, int64_t to_base)
    : layout_(Collapse(dims, {from_strides, to_strides})),
      from_base_(from_base),
      to_base_(to_base) {
  FindSquares();
}

// The squares' row axis is the one along which `from` (or, in a reversed copy, `to`) is contiguous.
void StridedCopy::FindSquares() {
  has_squares_ = false;
  const size_t last = layout_.dims.size() - 1;
  const size_t distant = layout_.inner_stride(0) == 1 ? 1 : 0;
  if (layout_.inner_stride(distant) == 1 || layout_.inner_stride(distant) == 0) return;
  for (size_t axis = 0; axis < last; ++axis) {
    if (layout_.strides[distant][axis] != 1 || layout_.dims[axis] < 4) continue;
    has_squares_ = true;
    rows_ = layout_.dims[axis];
    from_row_ = layout_.strides[0][axis];
    to_row_ = layout_.strides[1][axis];
    outer_ = layout_;
    for (const size_t dropped : {last, axis}) {
      const auto at = static_cast<std::ptrdiff_t>(dropped);
      outer_.dims.erase(outer_.dims.begin() + at);
      for (Dims& strides : outer_.strides) strides.erase(strides.begin() + at);
    }
    if (outer_.dims.empty()) {
      outer_.dims = {1};
      outer_.strides = {{0}, {0}};
    }
    return;
  }
}

StridedCopy StridedCopy::Reversed() const {
  StridedCopy reversed = *this;
  std::swap(reversed.layout_.strides[0], reversed.layout_.strides[1]);
  std::swap(reversed.from_base_, reversed.to_base_);
  reversed.FindSquares();
  return reversed;
}

template <typename T>
void StridedCopy::RunRows(const T* from, T* to) const {
  ForRuns(layout_, [=, this](const int64_t* at, int64_t length) {
    CopyRun(from + at[0], layout_.inner_stride(0), to + at[1], layout_.inner_stride(1), length);
  });
}

template <typename T>
void StridedCopy::RunSquares(const T* from, T* to) const {
  const int64_t columns = layout_.inner();
  const int64_t strips = (rows_ + kSquare - 1) / kSquare;
  const int64_t grain = std::max<int64_t>(1, kGrain / (kSquare * columns));
  const auto square = [=, this](const T* x, T* y, int64_t height, int64_t width) {
    for (int64_t row = 0; row < height; ++row) {
      CopyRun(x + row * from_row_, layout_.inner_stride(0), y + row * to_row_,
              layout_.inner_stride(1), width);
    }
  };
  ParallelFor(outer_.count() * strips, grain, [=, this](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % strips * kSquare;
      const int64_t height = std::min(kSquare, rows_ - first);
      WalkRuns(outer_, task / strips, task / strips + 1, [&](const int64_t* at, int64_t) {
        for (int64_t column = 0; column < columns; column += kSquare) {
          square(from + at[0] + first * from_row_ + column * layout_.inner_stride(0),
                 to + at[1] + first * to_row_ + column * layout_.inner_stride(1), height,
                 std::min(kSquare, columns - column));
        }
      });
    }
  });
}

void StridedCopy::Run(const void* from, void* to, int64_t element_bytes) const {
  if (layout_.count() == 0) return;
  WithElementOf(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    const T* x = static_cast<const T*>(from) + from_base_;
    T* y = static_cast<T*>(to) + to_base_;
    if (has_squares_) {
      RunSquares(x, y);
    } else {
      RunRows(x, y);
    }
  });
}

}  // namespace ckplan::cpu
