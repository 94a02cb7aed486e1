// Sorts indices by the rows that they name and, for equal rows, by their position. With this list,
// one thread for each column of a row can sum in a fixed order, without searching all indices.
//
// This is a merge sort: each key finds its position by a binary search in the neighbouring run.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/executor/cuda/launch.h"

namespace ckplan::cuda {

// A row and the position of an index that names it, packed into one key that sorts by row first.
struct Occurrence {
  uint64_t key = 0;
  CKPLAN_DEVICE static Occurrence Of(int64_t row, int64_t index) {
    return {(static_cast<uint64_t>(row) << 32) | static_cast<uint64_t>(index)};
  }
  CKPLAN_DEVICE int64_t row() const { return static_cast<int64_t>(key >> 32); }
  CKPLAN_DEVICE int64_t index() const { return static_cast<int64_t>(key & 0xFFFFFFFFU); }
};

// Rows and positions must be below this to fit into a key.
inline constexpr int64_t kMaxRows = int64_t{1} << 31;

// The maximum number of indices sorted at once. Further indices are processed afterwards.
inline constexpr int64_t kMaxSorted = int64_t{1} << 20;

// A sorted range of the indices.
struct SortedIndices {
  const Occurrence* list;
  int64_t count;

  CKPLAN_DEVICE int64_t row(int64_t i) const { return list[i].row(); }
  CKPLAN_DEVICE int64_t index(int64_t i) const { return list[i].index(); }
  // Returns whether entry i is the first one that names its row.
  CKPLAN_DEVICE bool IsFirst(int64_t i) const { return i == 0 || row(i - 1) != row(i); }
  CKPLAN_DEVICE bool IsLast(int64_t i) const { return i + 1 == count || row(i + 1) != row(i); }
};

// Length of the initial runs, which are sorted by comparing all pairs.
inline constexpr int64_t kFirstRun = 32;

namespace detail {

template <typename Target>
struct SortFirstRuns {
  Target target;
  int64_t rows, first, count;
  Occurrence* to;

  CKPLAN_DEVICE Occurrence At(int64_t i) const {
    const int64_t row = target(first + i);
    return Occurrence::Of(row < 0 ? rows : row, first + i);
  }
  CKPLAN_DEVICE void operator()(int64_t i) const {
    const int64_t begin = i / kFirstRun * kFirstRun;
    const int64_t end = Min(begin + kFirstRun, count);
    const Occurrence own = At(i);
    int64_t place = begin;
    for (int64_t k = begin; k < end; ++k) place += At(k).key < own.key ? 1 : 0;
    to[place] = own;
  }
};

// Merges pairs of neighbouring runs of `run` keys; all keys are different.
struct MergeRuns {
  const Occurrence* from;
  Occurrence* to;
  int64_t count, run;

  CKPLAN_DEVICE void operator()(int64_t i) const {
    const int64_t begin = i / (2 * run) * (2 * run);
    const int64_t middle = Min(begin + run, count);
    const bool is_first = i < middle;
    const Occurrence own = from[i];
    const int64_t other = is_first ? middle : begin;
    int64_t low = other;
    int64_t high = is_first ? Min(begin + 2 * run, count) : middle;
    while (low < high) {
      const int64_t half = low + (high - low) / 2;
      if (from[half].key < own.key) {
        low = half + 1;
      } else {
        high = half;
      }
    }
    to[begin + (i - (is_first ? begin : middle)) + (low - other)] = own;
  }
};

}  // namespace detail

// Returns the size in bytes of the workspace of SortIndices, a multiple of 256.
inline int64_t SortWorkspace(int64_t count) {
  return CeilDiv(2 * count * static_cast<int64_t>(sizeof(Occurrence)), 256) * 256;
}

// Sorts the indices [first, first + count). Indices out of range come last, as if they named row
// `rows`. The numbers of rows and of indices must be below kMaxRows. The result is in the
// workspace.
template <typename Target>
SortedIndices SortIndices(Device& device, const Target& target, int64_t rows, int64_t first,
                          int64_t count, void* workspace) {
  auto* sorted = static_cast<Occurrence*>(workspace);
  Occurrence* other = sorted + count;
  ForEach(device, count, detail::SortFirstRuns<Target>{target, rows, first, count, sorted});
  for (int64_t run = kFirstRun; run < count; run *= 2) {
    ForEach(device, count, detail::MergeRuns{sorted, other, count, run});
    std::swap(sorted, other);
  }
  return {sorted, count};
}

}  // namespace ckplan::cuda
