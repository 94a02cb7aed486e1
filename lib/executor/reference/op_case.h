// A case to check an operator with: its attributes, and the shapes and contents of its operands,
// written as one row of text.
//
//   {"Gemm", "f2x3 f3x4 f4 -> f2x4", "alpha=0.5 transB=0"}
//   {"Clip@6", "f2x3 -> f2x3", "min=-1.0 max=1.0"}
//   {"Gather", "f5x3 i4@[0,2,2,4] -> f4x3", "axis=0"}
//   {"ReduceSum", "f2x3 i1=[1] -> f2x1"}
//
// Operator    the name, and the opset after @ (20 if none is given)
// Operand     type, dimensions, role, contents, without spaces; _ for an operand that is left out
//   type      f float32, i int64, n int32, b bool
//   dims      2x3; s for a scalar
//   role      *  constant during the step: it has no gradient, but backward may read it
//             ~  depends on the batch, but its gradient is not requested
//             !  a trained parameter: constant during the step, and its gradient is requested
//             (none) depends on the batch; a float's gradient is requested, if there is one
//   contents  (0.5..2) random in this range; @[1,2] these values; =[1,2] these values, constant
//             and known to Prepare. By default (-2..2); integers 0 or 1.
// Attributes  NAME=VALUE with an integer, a real number (with a point or an exponent), a 'string',
//             a list [1,2] or [1.0,2.0], or a tensor {1,2} or {1.0}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/problem/ops/op_spec.h"

namespace ckplan::reference {

struct CaseRow {
  std::string_view type;
  std::string_view operands;
  std::string_view attributes;
  double tolerance = 1e-5;  // The largest |difference| / max(1, |value|) that passes.
};

// Describes how an input is filled.
struct Contents {
  double low = 0, high = 0;
  std::vector<double> values;  // Used instead of the range if not empty.
  bool wants_gradient = false;
  bool is_constant = false;
};

struct OpCase {
  std::string text;  // The row.
  OpSpec spec;       // SetGradientRoles sets the members that concern gradients.
  std::vector<Contents> contents;
  double tolerance = 0;
};

// Fails the program on a row that does not follow the grammar.
OpCase ParseCase(const CaseRow& row);

}  // namespace ckplan::reference
