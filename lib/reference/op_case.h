// A case to check an operator with: its attributes, and the shapes and contents of its operands,
// written as one row of text.
//
//   {"Gemm", "f2x3 f3x4 f4 -> f2x4", "alpha=0.5 transB=0"}
//   {"Clip@6", "f2x3 -> f2x3", "min=-1.0 max=1.0"}
//   {"Gather", "f5x3 i4@[0,2,2,4] -> f4x3", "axis=0"}
//   {"ReduceSum", "f2x3 i1=[1] -> f2x1"}
//
// Operator    name, and the opset after @ (20 where none is given)
// Operand     type, dimensions, role, contents, without spaces; or _ for one that is left out
//   type      f float32, i int64, n int32, b bool
//   dims      2x3; s for a scalar
//   role      *  constant during the step: no gradient, but backward may read it
//             ~  of the batch, but nobody asks for its gradient
//             !  a trained parameter: constant during the step, and its gradient is asked for
//             (nothing): of the batch; if float, its gradient is asked for, where there is one
//   contents  (0.5..2) random in this range; @[1,2] these; =[1,2] these, constant and known to
//             Prepare. Without: (-2..2); integers 0 or 1.
// Attributes  NAME=VALUE with an integer, a real number (with a point or an exponent), a 'string',
//             a list [1,2] or [1.0,2.0], or a tensor {1,2} or {1.0}
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ops/op_spec.h"

namespace ckplan::reference {

struct CaseRow {
  std::string_view type;
  std::string_view operands;
  std::string_view attributes = "";
  double tolerance = 1e-5;  // The largest |difference| / max(1, |value|) that passes.
};

// How an input is filled.
struct Contents {
  double low = 0, high = 0;
  std::vector<double> values;  // These, if there are any.
  bool wants_gradient = false;
  bool is_constant = false;
};

struct OpCase {
  std::string text;  // The row.
  OpSpec spec;       // What its operands are to backward is set by SetGradientRoles.
  std::vector<Contents> contents;
  double tolerance = 0;
};

// Fails the program on a row that does not follow the grammar.
OpCase ParseCase(const CaseRow& row);

// One list for each family, in a file of its own: cases_FAMILY.cc.
std::span<const CaseRow> UnaryCases();
std::span<const CaseRow> BinaryCases();
std::span<const CaseRow> ReduceCases();
std::span<const CaseRow> MoveCases();
std::span<const CaseRow> GenerateCases();
std::span<const CaseRow> ResizeCases();
std::span<const CaseRow> GatherCases();
std::span<const CaseRow> RotaryCases();
std::span<const CaseRow> LossCases();
std::span<const CaseRow> ConvCases();
std::span<const CaseRow> NormCases();
std::span<const CaseRow> MatMulCases();
std::span<const CaseRow> RecurrentCases();
std::span<const CaseRow> AttentionCases();

// How many cases of all families are of this operator.
int CountCases(std::string_view type);

}  // namespace ckplan::reference
