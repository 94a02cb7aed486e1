// Copies matrices that are read along rows and written along columns. Tiles in shared memory make
// both the reads and the writes of neighbouring threads adjacent in memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/executor/cuda/launch.h"

namespace ckplan::cuda {

inline constexpr int64_t kTile = 32;

// Divides matrices into tiles. A place is the first element of a tile.
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
  __shared__ T values[kTile][kTile + 1];  // One column more avoids bank conflicts along columns.
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
// matrix, where `offsets` is the result of body.Begin(matrix). Loads of neighbouring threads are in
// neighbouring columns, stores in neighbouring rows.
template <typename T, typename Body>
void ForTiles(Device& device, const TileGrid& grid, const Body& body) {
  if (grid.count() <= 0) return;
  Launch(device, detail::TilesKernel<T, Body>, {std::min(grid.count(), kMaxBlocks)}, grid, body);
}

}  // namespace ckplan::cuda
