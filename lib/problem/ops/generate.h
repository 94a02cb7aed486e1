// Shapes of operators that generate tensors from shapes, constants or random numbers, and of Trilu.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The value with which ConstantOfShape fills its output: `real` for floats, otherwise `integer`.
struct FillValue {
  double real = 0;
  int64_t integer = 0;
};
Result<FillValue> ReadConstantOfShape(const OpSpec& spec);

// Returns the contents of the int64 output of Shape and Size.
Result<Dims> ReadShapeOf(const OpSpec& spec);

// Returns OneHot's output as seen around the axis that it adds.
Result<AxisView> ReadOneHotShape(const OpSpec& spec);

struct TriluShape {
  int64_t rows = 1, columns = 1;  // Sizes of each matrix.
  // The upper triangle has the columns from row + diagonal on, the lower one the columns up to it.
  // Clamped to at most one beyond the edge of the matrix.
  int64_t diagonal = 0;
  bool is_upper = true;
};
Result<TriluShape> ReadTriluShape(const OpSpec& spec);

// Returns the fraction of elements that a Dropout sets to 0, between 0 and 1.
Result<double> ReadDropoutRatio(const OpSpec& spec);

}  // namespace ckplan
