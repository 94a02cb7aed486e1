// Shapes of operators that gather and scatter slices or elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Gather, GatherND and ScatterND select rows of the data by indices or by tuples of k indices.
//
//   data      outer x indexed[0] x ... x indexed[k - 1] x inner
//   indices   [outer x] count x k
//   rows      outer x count x inner: the gathered rows, or the scattered updates
struct GatherShape {
  int64_t outer = 1;
  Dims indexed;  // Sizes of the indexed axes: one for each member of a tuple.
  int64_t count = 0, inner = 1;
  bool is_shared = true;                             // All outer indices share one list of indices.
  int64_t rows() const { return Product(indexed); }  // Rows per outer index.
};

// For Gather and GatherND. Kernels check that the indices are in range.
Result<GatherShape> ReadGatherShape(const OpSpec& spec);
Result<GatherShape> ReadScatterNdShape(const OpSpec& spec);

// How an update is combined with the old element.
enum class Scattering { kSet, kAdd, kMul, kMax, kMin };
// Reads the attribute `reduction` of ScatterND and ScatterElements.
Result<Scattering> ReadScattering(const OpSpec& spec);

// For GatherElements and ScatterElements, where each element has its own index along one axis.
// Returns that axis. Checks that data (input 0) and indices (input 1) have the same number of axes,
// and that the indices are not longer than the data along the other axes. Kernels check that the
// indices are in range.
Result<size_t> ReadElementAxis(const OpSpec& spec);

}  // namespace ckplan
