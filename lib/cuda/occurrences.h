// Who names which row: indices sorted by the rows that they name, and where they name the same one,
// by their own order. What is summed for a row is so in a fixed order, and by one thread for each
// column, without a search through all indices.
//
// Sorting is by merging: each key finds its place by a search in the run beside its own.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/cuda/launch.h"

namespace ckplan::cuda {

// A row and the index that names it, in one number that sorts by the row first.
struct Occurrence {
  uint64_t key = 0;
  CKPLAN_DEVICE static Occurrence Of(int64_t row, int64_t index) {
    return {(static_cast<uint64_t>(row) << 32) | static_cast<uint64_t>(index)};
  }
  CKPLAN_DEVICE int64_t row() const { return static_cast<int64_t>(key >> 32); }
  CKPLAN_DEVICE int64_t index() const { return static_cast<int64_t>(key & 0xFFFFFFFFU); }
};

// What a key has place for.
inline constexpr int64_t kMostRows = int64_t{1} << 31;

// Indices that are sorted at once; what there is beyond comes after them.
inline constexpr int64_t kMostSorted = int64_t{1} << 20;

// Some of the indices, sorted.
struct SortedIndices {
  const Occurrence* list;
  int64_t count;

  CKPLAN_DEVICE int64_t row(int64_t i) const { return list[i].row(); }
  CKPLAN_DEVICE int64_t index(int64_t i) const { return list[i].index(); }
  // Of those that name the same row.
  CKPLAN_DEVICE bool IsFirst(int64_t i) const { return i == 0 || row(i - 1) != row(i); }
  CKPLAN_DEVICE bool IsLast(int64_t i) const { return i + 1 == count || row(i + 1) != row(i); }
};

// Runs that are sorted by comparing all with all.
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

// Pairs of neighbouring runs of `run` keys become one; no two keys are equal.
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

// Bytes that SortIndices needs, a multiple of 256.
inline int64_t SortWorkspace(int64_t count) {
  return CeilDiv(2 * count * static_cast<int64_t>(sizeof(Occurrence)), 256) * 256;
}

// Sorts the indices [first, first + count); those that name no row are last, as of row `rows`. Rows
// and indices are fewer than kMostRows. The result lies in the workspace.
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
