// Gather, GatherND and ScatterND: rows that are named by indices, or by tuples of indices.
//
//   data      outer x indexed[0] x ... x indexed[k - 1] x inner
//   indices   [outer x] count x k
//   rows      outer x count x inner: what is gathered, or the updates that are scattered
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct GatherShape {
  int64_t outer = 1;
  Dims indexed;  // By member of a tuple.
  int64_t count = 0, inner = 1;
  bool is_shared = true;  // All outer indices have one list of indices.

  int64_t rows() const { return Product(indexed); }  // For each outer index.
};

// For Gather and GatherND. Whether the indices lie within the axes is checked by the kernels.
Result<GatherShape> ReadGatherShape(const OpSpec& spec);
Result<GatherShape> ReadScatterNdShape(const OpSpec& spec);

// How an update is combined with what is there.
enum class Scattering { kSet, kAdd, kMul, kMax, kMin };
// How ScatterND and ScatterElements combine an update with what is there.
Result<Scattering> ReadScattering(const OpSpec& spec);

}  // namespace ckplan
