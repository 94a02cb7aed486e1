// Maps each index, or tuple of indices, to a row of a tensor. A target is such a map:
//
//   target(i)   the row that index i names, or -1 if it is out of range: such an index reads zeros
//               and writes nothing
//
// Negative indices count from the end.
#pragma once

#include <cstdint>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

CKPLAN_DEVICE inline int64_t IndexInside(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

// The target of Gather, GatherND and ScatterND: tuples of indices select rows by the leading
// dimensions.
//
//   data: outer x rows x inner       indices: [outer] x count x tuple
struct RowTarget {
  IntegersIn indices;  // Set at each call.
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

// The target of GatherElements and ScatterElements: each index selects one element along the axis;
// the element's position along the other axes is the index's own.
struct ElementTarget {
  IntegersIn indices;  // Set at each call.
  DeviceLayout<1> others;
  int64_t size = 0, step = 1;  // The axis of the data: its size and its stride.
  int64_t block = 1;           // Indices in a group of interleaved lines.

  CKPLAN_DEVICE int64_t operator()(int64_t i) const {
    const int64_t at = IndexInside(indices[i], size);
    return at < 0 ? -1 : others.Find(i)[0] + at * step;
  }
};

}  // namespace ckplan::cuda
