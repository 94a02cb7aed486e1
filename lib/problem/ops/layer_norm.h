// The shape of LayerNormalization and RMSNormalization, which normalise each row by its own
// moments.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct LayerNormShape {
  int64_t rows = 1, size = 1;
  // If true, the mean is subtracted; if false, the row is divided by its root mean square.
  bool has_mean = false;
  bool has_bias = false;
  float epsilon = 0;
};

Result<LayerNormShape> ReadLayerNormShape(const OpSpec& spec);

}  // namespace ckplan
