// Tensors made of shapes and a few numbers; and Trilu, which masks a triangle.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/axes.h"
#include "lib/ops/families.h"
#include "lib/ops/layout.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// The one number of a ConstantOfShape: `real` where its output holds floats, else `integer`.
struct FillValue {
  double real = 0;
  int64_t integer = 0;
};
Result<FillValue> ReadConstantOfShape(const OpSpec& spec);

// The contents that Shape and Size write: int64.
Result<Dims> ReadShapeOf(const OpSpec& spec);

// The view along the axis that OneHot adds.
Result<AxisView> ReadOneHotShape(const OpSpec& spec);

struct TriluShape {
  int64_t rows = 1, columns = 1;  // Sizes of each matrix.
  // Upper keeps the columns from row + diagonal on, lower those up to it.
  int64_t diagonal = 0;  // Clamped so that it is at most one outside of the matrix.
  bool is_upper = true;
};
Result<TriluShape> ReadTriluShape(const OpSpec& spec);

}  // namespace ckplan
