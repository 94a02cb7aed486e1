// Reads rows selected by indices, and adds updates to rows selected by indices.
//
//   data: outer x rows x inner       updates: outer x count x inner
#pragma once

#include <cstdint>
#include <utility>

#include "lib/executor/cuda/element_copy.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"

namespace ckplan::cuda {

// Negative indices count from the end. Returns -1 if the index is out of range: such an index reads
// zeros and writes nothing.
CKPLAN_DEVICE inline int64_t IndexInside(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

// The target of Gather and GatherND: tuples of indices select rows by the leading dimensions.
//
//   data: outer x rows x inner       indices: [outer] x count x tuple
struct RowTarget {
  IntegersIn indices;  // Set for each call.
  int tuple = 0;
  int64_t dims[kMaxAxes] = {};
  int64_t rows = 1;   // Rows per outer index.
  int64_t count = 0;  // Tuples per outer index.
  Divider counts;

  RowTarget() = default;
  // `indexed` has at most kMaxAxes dimensions.
  RowTarget(const Dims& indexed, int64_t tuples)
      : tuple(static_cast<int>(indexed.size())),
        rows(Product(indexed)),
        count(tuples),
        counts(tuples > 0 ? tuples : 1) {
    for (size_t k = 0; k < indexed.size(); ++k) dims[k] = indexed[k];
  }

  // Maps all tuples of all outer indices to all rows of the data.
  CKPLAN_DEVICE int64_t operator()(int64_t i) const {
    int64_t row = 0;
    for (int k = 0; k < tuple; ++k) {
      const int64_t at = IndexInside(indices[i * tuple + k], dims[k]);
      if (at < 0) return -1;
      row = row * dims[k] + at;
    }
    return counts.Quotient(i) * rows + row;
  }
};

// Sorts indices by the rows that they name and, for equal rows, by their position. With this list,
// one thread for each column of a row can sum in a fixed order, without searching all indices.
//
// A merge sort: each key finds its position by binary search in the neighbouring run.

// A row and the position of an index that names it, packed into a key that sorts by row first.
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
  // True if entry i is the first one that names its row.
  CKPLAN_DEVICE bool IsFirst(int64_t i) const { return i == 0 || row(i - 1) != row(i); }
};

// Length of the initial runs, which are sorted by comparing all pairs.
inline constexpr int64_t kFirstRun = 32;

namespace detail {

struct SortFirstRuns {
  RowTarget target;
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

// Merges pairs of neighbouring runs of `run` keys. All keys are different.
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

// Returns the size in bytes of SortIndices's workspace, a multiple of 256.
inline int64_t SortWorkspace(int64_t count) {
  return CeilDiv(2 * count * static_cast<int64_t>(sizeof(Occurrence)), 256) * 256;
}

// Sorts the indices [first, first + count). Indices out of range come last, as if they named row
// `rows`. The numbers of rows and of indices must be below kMaxRows. The result is in the
// workspace.
inline SortedIndices SortIndices(Device& device, const RowTarget& target, int64_t rows,
                                 int64_t first, int64_t count, void* workspace) {
  auto* sorted = static_cast<Occurrence*>(workspace);
  Occurrence* other = sorted + count;
  ForEach(device, count, detail::SortFirstRuns{target, rows, first, count, sorted});
  for (int64_t run = kFirstRun; run < count; run *= 2) {
    ForEach(device, count, detail::MergeRuns{sorted, other, count, run});
    std::swap(sorted, other);
  }
  return {sorted, count};
}

struct ScatterShape {
  int64_t outer = 1;  // All outer indices share one list of indices.
  int64_t rows = 0, count = 0, inner = 0;

  int64_t data() const { return outer * rows * inner; }
  int64_t updates() const { return outer * count * inner; }
  // Returns this shape with pieces of `at_once` elements instead of single elements.
  ScatterShape InPieces(int64_t at_once) const { return {outer, rows, count, inner / at_once}; }
  // Returns the number of indices that are sorted at once.
  int64_t slab() const { return Min(count, kMaxSorted); }
};

// An element of an update: its outer index, its index (or position among the sorted indices), and
// its column.
struct UpdatePlace {
  int64_t outer, index, column;
};

struct UpdatePlaces {
  Divider inner{1}, count{1};
  UpdatePlaces(int64_t inner_size, int64_t index_count) : inner(inner_size), count(index_count) {}
  CKPLAN_DEVICE UpdatePlace Find(int64_t i) const {
    UpdatePlace place{};
    place.column = i;
    place.index = inner.Split(place.column);
    place.outer = count.Split(place.index);
    return place;
  }
};

// Computes updates[o, i] = data[o, target(i)], or zeros if the index is out of range.
inline void GatherRows(Device& device, ScatterShape shape, const RowTarget& target,
                       const void* data, ElementType data_type, void* updates,
                       ElementType updates_type) {
  if (shape.updates() == 0) return;
  ElementCopy copy(data, data_type, updates, updates_type);
  if (data_type == updates_type) {
    const int64_t at_once = ElementsAtOnce(shape.inner, SizeOf(data_type));
    copy = ElementCopy(data, updates, at_once * SizeOf(data_type));
    shape = shape.InPieces(at_once);
  }
  const UpdatePlaces places(shape.inner, shape.count);
  ForEach(device, shape.updates(), [=] CKPLAN_KERNEL(int64_t i) {
    const UpdatePlace at = places.Find(i);
    const int64_t row = target(at.index);
    if (row < 0) {
      copy.Clear(i);
    } else {
      copy(i, (at.outer * shape.rows + row) * shape.inner + at.column);
    }
  });
}

// ---- Sums of floats -----------------------------------------------------------------------------

// A row that many indices name, such as a padding token's, is summed in chunks of this many
// indices.
inline constexpr int64_t kChunk = 64;

inline int64_t ChunksWorkspace(const ScatterShape& shape) {
  const int64_t chunks = shape.slab() / kChunk;
  return shape.outer * chunks * shape.inner * static_cast<int64_t>(sizeof(float));
}

namespace detail {

// kWidth neighbouring columns: one, or as many as a thread reads at once.
template <int kWidth>
struct Columns {
  float at[kWidth] = {};

  // Adds the elements starting at `i`, a multiple of kWidth.
  CKPLAN_DEVICE void Add(const FloatsIn& from, int64_t i) {
    if constexpr (kWidth == kVector) {
      const Float4 values = from.Load(i / kVector);
      for (int k = 0; k < kWidth; ++k) at[k] += values.at[k];
    } else {
      for (int k = 0; k < kWidth; ++k) at[k] += from[i + k];
    }
  }
  CKPLAN_DEVICE void AddTo(const FloatsOut& to, int64_t i) const {
    if constexpr (kWidth == kVector) {
      Float4 values;
      for (int k = 0; k < kWidth; ++k) values.at[k] = to[i + k] + at[k];
      to.Store(i / kVector, values);
    } else {
      for (int k = 0; k < kWidth; ++k) to.Set(i + k, to[i + k] + at[k]);
    }
  }
};

// Computes sums[o, chunk] = Σ updates[o, i] over the i of a chunk whose indices all name one row.
template <int kWidth>
struct SumChunks {
  ScatterShape shape;
  SortedIndices sorted;
  UpdatePlaces places;
  FloatsIn updates;
  float* sums;

  CKPLAN_DEVICE void operator()(int64_t i) const {
    const UpdatePlace at = places.Find(i);
    const int64_t first = at.index * kChunk;
    const int64_t row = sorted.row(first);
    if (row >= shape.rows || sorted.row(first + kChunk - 1) != row) return;
    const int64_t base = at.outer * shape.count;
    const int64_t column = at.column * kWidth;
    Columns<kWidth> sum;
    for (int64_t k = first; k < first + kChunk; ++k) {
      sum.Add(updates, (base + sorted.index(k)) * shape.inner + column);
    }
    for (int k = 0; k < kWidth; ++k) sums[i * kWidth + k] = sum.at[k];
  }
};

// The thread of the first index that names a row sums over all indices that name it.
template <int kWidth>
struct AddRows {
  ScatterShape shape;
  SortedIndices sorted;
  UpdatePlaces places;
  FloatsIn updates, sums;
  FloatsOut data;

  CKPLAN_DEVICE void operator()(int64_t i) const {
    const UpdatePlace at = places.Find(i);
    const int64_t row = sorted.row(at.index);
    if (row >= shape.rows || !sorted.IsFirst(at.index)) return;
    const int64_t base = at.outer * shape.count;
    const int64_t chunks = at.outer * (sorted.count / kChunk);
    const int64_t column = at.column * kWidth;
    Columns<kWidth> sum;
    for (int64_t k = at.index; k < sorted.count && sorted.row(k) == row;) {
      const int64_t last = k + kChunk - 1;
      if (k % kChunk == 0 && last < sorted.count && sorted.row(last) == row) {
        sum.Add(sums, (chunks + k / kChunk) * shape.inner + column);
        k += kChunk;
      } else {
        sum.Add(updates, (base + sorted.index(k)) * shape.inner + column);
        ++k;
      }
    }
    sum.AddTo(data, (at.outer * shape.rows + row) * shape.inner + column);
  }
};

template <int kWidth>
void AddRowsOf(Device& device, const ScatterShape& shape, const SortedIndices& sorted,
               FloatsIn updates, FloatsOut data, void* workspace) {
  const int64_t columns = shape.inner / kWidth;
  const int64_t chunks = sorted.count / kChunk;
  if (chunks > 0) {
    ForEach(device, shape.outer * chunks * columns,
            SumChunks<kWidth>{shape, sorted, UpdatePlaces(columns, chunks), updates,
                              static_cast<float*>(workspace)});
  }
  ForEach(device, shape.outer * sorted.count * columns,
          AddRows<kWidth>{shape, sorted, UpdatePlaces(columns, sorted.count), updates,
                          FloatsIn(workspace, ElementType::kFloat32), data});
}

}  // namespace detail

// Computes data[o, row] += Σ updates[o, i] over the i that name the row. `workspace` has
// ChunksWorkspace bytes.
inline void AddRows(Device& device, const ScatterShape& shape, const SortedIndices& sorted,
                    FloatsIn updates, FloatsOut data, void* workspace) {
  if (shape.inner % kVector == 0) {
    detail::AddRowsOf<kVector>(device, shape, sorted, updates, data, workspace);
  } else {
    detail::AddRowsOf<1>(device, shape, sorted, updates, data, workspace);
  }
}

}  // namespace ckplan::cuda
