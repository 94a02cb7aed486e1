#include <algorithm>
#include <cstdint>
#include <numeric>

#include "lib/executor/cuda/element_copy.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/strided_copy.h"

namespace ckplan::cuda {

// Copies matrices that are read along rows and written along columns. Through tiles in shared
// memory, neighbouring threads both read and write adjacent elements.

constexpr int64_t kTile = 32;

// Divides matrices into tiles. A Place is a tile's first element.
struct TileGrid {
  int64_t matrices = 0, rows = 0, columns = 0;

  CKPLAN_DEVICE int64_t down() const { return CeilDiv(rows, kTile); }
  CKPLAN_DEVICE int64_t across() const { return CeilDiv(columns, kTile); }
  CKPLAN_DEVICE int64_t count() const { return matrices * down() * across(); }

  struct Place {
    int64_t matrix, row, column;
  };
  CKPLAN_DEVICE Place Find(int64_t tile) const {
    const int64_t strip = tile / across();
    return {strip / down(), strip % down() * kTile, tile % across() * kTile};
  }
};

namespace detail {

template <typename T, typename Body>
__global__ void __launch_bounds__(kBlockThreads) TilesKernel(TileGrid grid, Body body) {
  __shared__ T values[kTile][kTile + 1];  // An extra column avoids bank conflicts along columns.
  constexpr int64_t kLines = kBlockThreads / kTile;
  const int64_t lane = threadIdx.x % kTile;
  const int64_t line = threadIdx.x / kTile;
  for (int64_t tile = blockIdx.x; tile < grid.count(); tile += gridDim.x) {
    const TileGrid::Place place = grid.Find(tile);
    const auto offsets = body.Begin(place.matrix);
    for (int64_t i = line; i < kTile && place.row + i < grid.rows; i += kLines) {
      if (place.column + lane < grid.columns) {
        values[i][lane] = body.Load(offsets, place.row + i, place.column + lane);
      }
    }
    __syncthreads();
    for (int64_t i = line; i < kTile && place.column + i < grid.columns; i += kLines) {
      if (place.row + lane < grid.rows) {
        body.Store(offsets, place.row + lane, place.column + i, values[lane][i]);
      }
    }
    __syncthreads();
  }
}

}  // namespace detail

// Calls body.Store(offsets, row, column, body.Load(offsets, row, column)) for each element of each
// matrix, where `offsets` is the result of body.Begin(matrix). Neighbouring threads load from
// neighbouring columns and store to neighbouring rows.
template <typename T, typename Body>
void ForTiles(Device& device, const TileGrid& grid, const Body& body) {
  if (grid.count() <= 0) return;
  Launch(device, detail::TilesKernel<T, Body>, {BlocksFor(device, grid.count())}, grid, body);
}

namespace {

// A transpose: the source is contiguous along rows, the destination along columns.
template <typename T>
struct Transposition {
  const T* from;
  T* to;
  DeviceLayout<2> matrices;
  int64_t from_row, to_column;

  CKPLAN_DEVICE DeviceLayout<2>::Offsets Begin(int64_t matrix) const {
    return matrices.Find(matrix);
  }
  CKPLAN_DEVICE T Load(const DeviceLayout<2>::Offsets& at, int64_t row, int64_t column) const {
    return from[at[0] + row * from_row + column];
  }
  CKPLAN_DEVICE void Store(const DeviceLayout<2>::Offsets& at, int64_t row, int64_t column,
                           T value) const {
    to[at[1] + column * to_column + row] = value;
  }
};

template <typename T>
void RunTiles(Device& device, const TileGrid& grid, const DeviceLayout<2>& matrices,
              const void* from, int64_t from_row, void* to, int64_t to_column) {
  ForTiles<T>(device, grid,
              Transposition<T>{static_cast<const T*>(from), static_cast<T*>(to), matrices, from_row,
                               to_column});
}

const void* Advance(const void* data, int64_t bytes) {
  return static_cast<const char*>(data) + bytes;
}

// Orders the axes by descending stride, and reverses negative strides, so that the destination is
// written front to back.
Layout InOrderOfWrites(const Dims& dims, CopySide from, CopySide to, int64_t& from_base,
                       int64_t& to_base) {
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (to.strides[axis] >= 0) continue;
    from.base += (dims[axis] - 1) * from.strides[axis];
    to.base += (dims[axis] - 1) * to.strides[axis];
    from.strides[axis] = -from.strides[axis];
    to.strides[axis] = -to.strides[axis];
  }
  std::vector<size_t> order;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1) order.push_back(axis);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return to.strides[a] > to.strides[b]; });
  Dims sorted, from_strides, to_strides;
  for (const size_t axis : order) {
    sorted.push_back(dims[axis]);
    from_strides.push_back(from.strides[axis]);
    to_strides.push_back(to.strides[axis]);
  }
  from_base = from.base;
  to_base = to.base;
  return Collapse(sorted, {from_strides, to_strides});
}

}  // namespace

StridedCopy::StridedCopy(const Dims& dims, const CopySide& from, const CopySide& to)
    : dims_(dims), from_(from), to_(to) {
  if (Product(dims) == 0) return;
  Choose(InOrderOfWrites(dims, from, to, from_base_, to_base_));
}

void StridedCopy::Choose(Layout layout) {
  element_bytes_ = from_.type == to_.type ? SizeOf(from_.type) : 0;
  if (element_bytes_ > 0 && FindTiles(layout)) {
    way_ = Way::kTiles;
    return;
  }
  if (element_bytes_ > 0) Widen(layout);
  const bool is_contiguous = layout.inner_stride(0) == 1 && layout.inner_stride(1) == 1;
  const bool is_run = layout.dims.size() == 1 && (layout.count() == 1 || is_contiguous);
  way_ = is_run && element_bytes_ > 0 ? Way::kWhole : Way::kElements;
  fits_ = FitsDevice(layout);
  if (fits_) layout_ = DeviceLayout<2>(layout);
}

// Copies several elements at once if all runs start at multiples of that count.
void StridedCopy::Widen(Layout& layout) {
  if (layout.inner_stride(0) != 1 || layout.inner_stride(1) != 1) return;
  int64_t unit = std::gcd(layout.dims.back(), std::gcd(from_base_, to_base_));
  for (const Dims& strides : layout.strides) {
    for (size_t axis = 0; axis + 1 < strides.size(); ++axis) unit = std::gcd(unit, strides[axis]);
  }
  const int64_t at_once = ElementsAtOnce(unit, element_bytes_);
  element_bytes_ *= at_once;
  from_base_ /= at_once;
  to_base_ /= at_once;
  layout.dims.back() /= at_once;
  for (Dims& strides : layout.strides) {
    for (size_t axis = 0; axis + 1 < strides.size(); ++axis) strides[axis] /= at_once;
  }
}

// The destination is contiguous along the last axis. If the source is contiguous along another
// axis, these two axes form matrices to be transposed.
bool StridedCopy::FindTiles(const Layout& layout) {
  constexpr int64_t kMinLength =
      8;  // Below this length, neighbouring threads read few pieces anyway.
  const size_t last = layout.dims.size() - 1;
  if (layout.inner_stride(1) != 1 || std::abs(layout.inner_stride(0)) <= 1) return false;
  if (layout.dims[last] < kMinLength) return false;
  for (size_t axis = 0; axis < last; ++axis) {
    if (layout.strides[0][axis] != 1 || layout.dims[axis] < kMinLength) continue;
    Layout matrices = layout;
    rows_ = layout.dims[last];
    columns_ = layout.dims[axis];
    from_row_ = layout.strides[0][last];
    to_column_ = layout.strides[1][axis];
    for (const size_t dropped : {last, axis}) {
      const auto at = static_cast<std::ptrdiff_t>(dropped);
      matrices.dims.erase(matrices.dims.begin() + at);
      for (Dims& strides : matrices.strides) strides.erase(strides.begin() + at);
    }
    matrices = Collapse(matrices.dims, matrices.strides);
    fits_ = FitsDevice(matrices);
    if (fits_) layout_ = DeviceLayout<2>(matrices);
    return true;
  }
  return false;
}

void StridedCopy::Run(Device& device, const void* from, void* to) const {
  if (way_ == Way::kNothing) return;
  const int64_t from_bytes = element_bytes_ > 0 ? element_bytes_ : SizeOf(from_.type);
  const int64_t to_bytes = element_bytes_ > 0 ? element_bytes_ : SizeOf(to_.type);
  const void* x = Advance(from, from_base_ * from_bytes);
  void* y = static_cast<char*>(to) + to_base_ * to_bytes;
  if (way_ == Way::kWhole) {
    if (x != y) device.Copy(y, x, layout_.count() * element_bytes_);
    return;
  }
  if (way_ == Way::kTiles) {
    const TileGrid grid{layout_.count(), rows_, columns_};
    const auto run = element_bytes_ == 1   ? RunTiles<uint8_t>
                     : element_bytes_ == 2 ? RunTiles<uint16_t>
                     : element_bytes_ == 4 ? RunTiles<uint32_t>
                                           : RunTiles<uint64_t>;
    return run(device, grid, layout_, x, from_row_, y, to_column_);
  }
  const ElementCopy copy = element_bytes_ > 0 ? ElementCopy(x, y, element_bytes_)
                                              : ElementCopy(x, from_.type, y, to_.type);
  const DeviceLayout<2> layout = layout_;
  ForEach(device, layout.count(), [=] CKPLAN_KERNEL(int64_t i) {
    const auto at = layout.Find(i);
    copy(at[1], at[0]);
  });
}

}  // namespace ckplan::cuda
