// Shapes of operators that generate tensors, from constants or at random.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Operators that make tensors from shapes and a few numbers, and Trilu, which masks a triangle of a
// matrix.

// The value that ConstantOfShape fills its output with: `real` if the output holds floats,
// otherwise `integer`.
struct FillValue {
  double real = 0;
  int64_t integer = 0;
};
Result<FillValue> ReadConstantOfShape(const OpSpec& spec);

// The contents of the output of Shape and Size, which is int64.
Result<Dims> ReadShapeOf(const OpSpec& spec);

// Returns the view of the output around the axis that OneHot adds.
Result<AxisView> ReadOneHotShape(const OpSpec& spec);

struct TriluShape {
  int64_t rows = 1, columns = 1;  // Sizes of each matrix.
  // The upper triangle has the columns from row + diagonal on, the lower one the columns up to
  // there.
  int64_t diagonal = 0;  // Clamped to at most one beyond the edge of the matrix.
  bool is_upper = true;
};
Result<TriluShape> ReadTriluShape(const OpSpec& spec);

// Dropout, and the operators that draw random numbers.

// Returns the fraction of elements that a Dropout sets to 0, between 0 and 1.
Result<double> ReadDropoutRatio(const OpSpec& spec);

}  // namespace ckplan
