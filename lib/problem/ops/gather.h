// Shapes of operators that gather and scatter slices or elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Gather, GatherND and ScatterND: rows of the data are selected by indices, or by tuples of k
// indices.
//
//   data      outer x indexed[0] x ... x indexed[k - 1] x inner
//   indices   [outer x] count x k
//   rows      outer x count x inner: what is gathered, or the updates that are scattered
struct GatherShape {
  int64_t outer = 1;
  Dims indexed;  // Sizes of the indexed axes: one for each member of a tuple.
  int64_t count = 0, inner = 1;
  bool is_shared = true;  // All outer indices use the same list of indices.

  int64_t rows() const { return Product(indexed); }  // Rows for each outer index.
};

// For Gather and GatherND. Kernels check whether the indices are in range.
Result<GatherShape> ReadGatherShape(const OpSpec& spec);
Result<GatherShape> ReadScatterNdShape(const OpSpec& spec);

// How an update is combined with the old element.
enum class Scattering { kSet, kAdd, kMul, kMax, kMin };
// Reads the attribute `reduction` of ScatterND and ScatterElements.
Result<Scattering> ReadScattering(const OpSpec& spec);

// GatherElements and ScatterElements: every element has its own index along one axis, and keeps its
// position along all others.

// Returns the axis along which the data (input 0) is indexed by the indices (input 1). Both have
// the same number of axes, and along the other axes the indices are not longer than the data.
// Kernels check whether the indices themselves are in range.
Result<size_t> ReadElementAxis(const OpSpec& spec);

}  // namespace ckplan
